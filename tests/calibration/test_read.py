import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from specserve.calibration.read import read_calibration, save_calibration
from specserve.errors import ConfigError, Problem
from specserve.testing.calibrations import make_calibration

Change = Callable[[dict[str, Any]], object]


def tree() -> dict[str, Any]:
    content: dict[str, Any] = json.loads(make_calibration().model_dump_json())
    return content


def problems(path: Path) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as refused:
        read_calibration(str(path))
    for problem in refused.value.problems:
        assert ("policy.calibration", str(path)) == (problem.key, problem.value)
        assert "set policy.calibration to a file that `specserve calibrate` wrote" == problem.fix
    return refused.value.problems


def test_what_was_saved_is_read(tmp_path: Path) -> None:
    path = tmp_path / "table.json"
    save_calibration(make_calibration(), path)

    assert make_calibration() == read_calibration(str(path))


def test_the_recorded_example_is_the_made_up_one() -> None:
    """It is the file that tests of commands name."""
    recorded = Path(__file__).parent.parent / "data/calibration.json"

    assert make_calibration() == read_calibration(str(recorded))


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"", "but its format is None"),
        (b"{", "but its format is None"),
        (b"\xff\xfe", "but its format is None"),
        (b"[1]", "but its format is None"),
        (b"{}", "but its format is None"),
        (b'{"format": "specserve-calibration-2"}', "but its format is 'specserve-calibration-2'"),
    ],
)
def test_a_file_of_another_format_is_refused_as_that_and_no_more(
    tmp_path: Path, content: bytes, expected: str
) -> None:
    path = tmp_path / "table.json"
    path.write_bytes(content)

    [problem] = problems(path)
    assert expected in problem.expected
    assert "specserve-calibration-1" in problem.expected


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    [problem] = problems(tmp_path / "none.json")
    assert "No such file" in problem.expected

    [problem] = problems(tmp_path)
    assert "directory" in problem.expected


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (lambda t: t.update(batch_sizes=[4, 1, 16, 64]), "batch_sizes is [4, 1, 16, 64]"),
        (lambda t: t["depths"][1].update(num_steps=0), "depths[].num_steps is [0, 0, 2, 3]"),
        (lambda t: t["depths"].pop(0), "depths[].num_steps is [1, 2, 3]"),
        (lambda t: t["depths"][2]["round_seconds"].pop(), "depths[2].round_seconds is"),
        (lambda t: t["depths"][2]["round_seconds"].insert(0, -1.0), "times above 0"),
        (lambda t: t.update(accepted_by_position=[1, 2, 3]), "accepted_by_position is [1, 2, 3]"),
        (lambda t: t["depths"][0].update(num_steps="0"), "depths[0].num_steps is '0'"),
        (lambda t: t.pop("topk"), "topk is missing"),
        (lambda t: t["provenance"].pop("device"), "provenance.device is missing"),
        (lambda t: t.update(extra=1), "extra is 1"),
        (lambda t: t["depths"][0]["round_seconds"].append(float("nan")), "round_seconds[4] is nan"),
    ],
)
def test_a_fault_is_named_by_its_place(tmp_path: Path, change: Change, expected: str) -> None:
    content, path = tree(), tmp_path / "table.json"
    change(content)
    path.write_text(json.dumps(content), encoding="utf-8")

    assert expected in " | ".join(problem.expected for problem in problems(path))


def test_all_faults_are_told_at_once(tmp_path: Path) -> None:
    content, path = tree(), tmp_path / "table.json"
    content["batch_sizes"] = [64, 16, 4, 1]
    content["depths"][0]["round_seconds"] = [0.0]
    content["accepted_by_position"] = [1, 2, 3]
    path.write_text(json.dumps(content), encoding="utf-8")

    assert 4 == len(problems(path))


def test_bundled_names_lie_in_the_package() -> None:
    with pytest.raises(ConfigError, match=r"bundled:calibrations/none\.json"):
        read_calibration("bundled:calibrations/none.json")
