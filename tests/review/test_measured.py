from pathlib import Path

import pytest

from specserve.review.measured import read_measured


def test_the_last_line_counts_and_its_scalars_are_shown(tmp_path: Path) -> None:
    (tmp_path / "results.jsonl").write_text(
        '{"tokens_per_second": 1}\n{"tokens_per_second": 6218.25, "concurrency": 64, "x": [1]}\n'
    )
    measured = read_measured(tmp_path)

    assert {"tokens_per_second": "6,218.25", "concurrency": "64"} == measured.figures
    assert f"last line of {tmp_path.name}/results.jsonl" == measured.source


@pytest.mark.parametrize(
    ("contents", "words"),
    [
        (None, "cannot be read"),
        (b"", "no results.jsonl with results"),
        (b"[1]\n", "no results.jsonl with results"),
        (b"{cut off\n", "cannot be read"),
        (b"\xff\n", "cannot be read"),
    ],
)
def test_without_figures_it_says_why(contents: bytes | None, words: str, tmp_path: Path) -> None:
    if contents is not None:
        (tmp_path / "results.jsonl").write_bytes(contents)
    measured = read_measured(tmp_path)

    assert ({}, True) == (measured.figures, words in measured.source)


def test_no_run_is_said_to_be_none() -> None:
    assert "no run of it was measured" == read_measured(None).source
