"""`specserve diff`, from the command line: every kind of subject."""

import json
from pathlib import Path

import pytest

from specserve.check import check_run
from specserve.cli import main
from specserve.worker.run_directory import config_yaml
from tests.review.conftest import UserRepository, experiment

FACTS = Path(__file__).parent.parent / "data/facts/kimi_k25.json"


def _diff(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    assert 0 == main(["diff", *words]), capsys.readouterr().err
    return capsys.readouterr().out


def test_the_verdict_stands_first_then_what_was_compared(
    capsys: pytest.CaptureFixture[str],
) -> None:
    text = _diff(capsys, "topk1_v2", "topk1_v2 policy.disable_above=20 server.host=0.0.0.0")

    assert [
        "2 new dangers, 2 changed keys, the depth by load changes",
        "  before  topk1_v2 (an experiment)",
        "  after   topk1_v2 policy.disable_above=20 server.host=0.0.0.0 (an experiment)",
    ] == text.splitlines()[:3]
    assert "  7 to 8           3 steps; plain coming from more  3 steps  changed" in text
    assert "before, falling  333333··········" in text


def test_no_difference_is_said_to_be_none(capsys: pytest.CaptureFixture[str]) -> None:
    assert _diff(capsys, "topk1_v2", "topk1_v2").startswith("no difference\n")


def test_overrides_behind_the_subjects_are_for_both(capsys: pytest.CaptureFixture[str]) -> None:
    limit = "scheduler.max_running_requests=4"

    assert "\n  1 to 4 " in _diff(capsys, "baseline", "topk1_v2", limit)


def test_a_subject_may_be_the_defaults_with_overrides(capsys: pytest.CaptureFixture[str]) -> None:
    told = json.loads(_diff(capsys, "baseline", "server.port=1", "--json"))

    assert [("server.port", 8000, 1)] == [
        (c["name"], c["before"], c["after"]) for c in told["keys"]
    ]


def test_a_revision_is_read_from_git(
    repository: UserRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("few.yaml", experiment(6))
    text = _diff(capsys, "main:few", "few", "--config-dir", "serving")

    assert "  before  main:few (at a revision)" in text
    assert "  policy.disable_above  4       6" in text
    assert "no difference" in _diff(capsys, "main:", "HEAD:", "-cd", "serving")


def test_an_experiment_that_a_revision_lacks_is_a_side_that_does_not_compose(
    repository: UserRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    repository.write("new.yaml", experiment(6))
    text = _diff(capsys, "main:new", "new", "-cd", "serving")

    assert "rules no longer broken" in text
    assert "[SPEC105]" in text


def test_a_file_and_a_run_folder_are_compared_as_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "run"
    folder.mkdir()
    config = check_run(["+experiment=topk1_v2", "server.port=1"], [], None).config
    (folder / "config.yaml").write_text(config_yaml(config))
    (folder / "results.jsonl").write_text('{"tokens_per_second": 12.5}\n')

    text = _diff(capsys, "topk1_v2", str(folder))
    assert f"  after   {folder} (a run folder)" in text
    assert "  server.port  8000    1" in text
    assert "  tokens_per_second  —       12.5" in text
    file = folder / "config.yaml"
    assert _diff(capsys, str(folder), str(file)).startswith("no difference\n")


def test_engine_arguments_are_compared_on_the_machine_of_the_facts(
    capsys: pytest.CaptureFixture[str],
) -> None:
    kimi = "kimi_k25_int4_topk1_v2"
    text = _diff(capsys, kimi, f"{kimi} policy=always", "--facts", str(FACTS))

    assert "  --speculative-adaptive " in text
    assert "memory, " not in text or "growth" in text


@pytest.mark.parametrize(
    ("words", "told"),
    [
        ([], "expected two subjects to compare"),
        (["baseline"], "diff='baseline': expected two subjects"),
        (["baseline", "nowhere"], "experiment='nowhere'"),
        (["baseline", "nowhere:baseline"], "diff='nowhere'"),
        (["baseline", "x.yaml"], "diff='x.yaml': expected a whole configuration"),
        (["baseline", "."], "expected a whole configuration"),
        (["baseline", "topk1_v2 'open"], "words that end"),
        (["baseline", "baseline", "x.yaml"], "x.yaml"),
        (["--frob"], "see `specserve diff --help`"),
    ],
)
def test_what_is_wrong_ends_with_2(
    words: list[str], told: str, repository: UserRepository, capsys: pytest.CaptureFixture[str]
) -> None:
    assert 2 == main(["diff", *words, "-cd", "serving"])

    out, err = capsys.readouterr()
    assert ("", True) == (out, told in err), err


def test_a_file_takes_no_overrides(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert 2 == main(["diff", str(tmp_path), "baseline", "server.port=1"])
    assert "no overrides" in capsys.readouterr().err
