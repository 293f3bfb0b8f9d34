from pathlib import Path

from specserve.check.survey import survey
from specserve.check.text import survey_text
from tests.check.conftest import write


def test_the_verdict_comes_first() -> None:
    first, *rest = survey_text(survey([], [], None)).splitlines()

    assert first.startswith("OK: ")
    assert "experiments and" in first
    assert any(line.startswith("  ok            +experiment=topk1_v2") for line in rest)


def test_what_failed_is_named_in_the_verdict_and_told_with_file_line_and_fix(
    configs: Path,
) -> None:
    write(configs, {"experiment/bad.yaml": "# @package _global_\nserver:\n  prot: 1\n"})
    first, failed, problem, *_ = survey_text(survey([], [configs], None)).splitlines()

    assert first.startswith("FAILED: ")
    assert "1 failed: +experiment=bad" in first
    assert f"  failed        +experiment=bad ({configs}/experiment/bad.yaml)" == failed
    assert problem.startswith(f"    {configs}/experiment/bad.yaml:3: server.prot=1: expected")
    assert problem.endswith("[SPEC201]")


def test_a_run_for_another_machine_says_what_to_give(configs: Path) -> None:
    text = "# @package _global_\ndefaults:\n  - override /engine: sglang\n"
    more = "model: {path: a/b}\nparallel: {tensor_parallel: 64}\n"
    write(configs, {"experiment/large.yaml": text + more})
    told = survey_text(survey([], [configs], None))

    assert "can't be planned here" in told.splitlines()[0]
    assert "can't be planned here: needs 64 GPUs" in told
    assert "give --facts FILE" in told


def test_a_doubt_is_told_with_how_grave_it_is(configs: Path) -> None:
    write(configs, {"experiment/open.yaml": "# @package _global_\nserver:\n  host: 0.0.0.0\n"})

    assert "open.yaml:3: danger: server.host=0.0.0.0" in survey_text(survey([], [configs], None))
