from pathlib import Path

import pytest

from specserve.check import check_run
from specserve.errors import ConfigError
from specserve.plan import memory_table

FACTS = Path(__file__).parent.parent / "data/facts"
ABSENT = ["model.path=nobody/nothing", "model.draft_path=nobody/nothing-eagle3"]


def test_a_plan_is_reported_with_what_it_changed_and_why() -> None:
    report = check_run(["+experiment=topk1_v2", "model=llama31_8b"], [], FACTS / "h200.json")
    lines = str(report).splitlines()

    assert "OK" == lines[0]
    assert report.plan is not None
    assert [
        f"  {change.key}: {change.asked} -> {change.effective} ({change.reason})"
        for change in report.adjustments
    ] == [line for line in lines if " -> " in line]
    assert any("speculation.num_draft_tokens: auto -> 4" in line for line in lines)


def test_the_large_model_is_planned_on_a_machine_that_is_not_here() -> None:
    report = check_run(["+experiment=kimi_k25_int4_topk1_v2"], [], FACTS / "kimi_k25.json")

    assert report.plan is not None
    assert ("sglang", 8) == (report.plan.engine, report.plan.tensor_parallel)


def test_memory_is_told_row_by_row_and_the_arguments_with_their_keys() -> None:
    report = check_run(["+experiment=kimi_k25_int4_topk1_v2"], [], FACTS / "kimi_k25.json")
    words = [line.split() for line in str(report).splitlines()]

    assert report.plan is not None
    assert all(f"  {line}" in str(report) for line in memory_table(report.plan))
    assert ["--tp-size", "8", "parallel.tensor_parallel"] in words
    assert "arguments of SGLang" not in str(check_run(["+experiment=topk1_v2"], [], None))


def test_checkpoints_that_are_not_here_are_said_to_be_unchecked() -> None:
    report = check_run(["+experiment=topk1_v2", *ABSENT], [], None)

    assert report.plan is None
    assert ["model.path", "speculation.draft.path"] == [p.key for p in report.missing]
    assert "not checked   architecture, tensors" in str(report)


def test_the_machine_is_checked_even_without_checkpoints() -> None:
    """No machine that runs these tests has 64 GPUs."""
    with pytest.raises(ConfigError, match=r"parallel\.tensor_parallel"):
        check_run(["engine=sglang", "parallel.tensor_parallel=64", *ABSENT[:1]], [], None)


def test_doubts_of_the_configuration_are_reported() -> None:
    report = check_run(["server.host=0.0.0.0", *ABSENT[:1]], [], None)

    assert any("server.api_key" in warning.text for warning in report.warnings)
    assert "  danger        server.host=0.0.0.0" in str(report)


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    """Unlike a hub id, a path says that the checkpoint should be here."""
    with pytest.raises(ConfigError, match=r"model\.path"):
        check_run([f"model.path={tmp_path / 'nothing'}"], [], None)


def test_facts_that_are_not_there_are_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--facts"):
        check_run([], [], tmp_path / "none.json")


def test_what_the_engine_decides_by_itself_is_reported_with_the_plan() -> None:
    report = check_run(["+experiment=kimi_k25_int4_topk1_v2"], [], FACTS / "kimi_k25.json")

    assert report.plan is not None
    assert all(change in report.adjustments for change in report.plan.adjustments)
    assert len(report.adjustments) > len(report.plan.adjustments)


def test_what_the_engine_would_not_keep_is_refused() -> None:
    overrides = ["+experiment=topk1_v2", "model=llama31_8b", "engine=sglang", "policy=always"]
    with pytest.raises(ConfigError, match=r"SPEC317"):
        check_run([*overrides, "engine.page_size=48"], [], FACTS / "h200.json")
