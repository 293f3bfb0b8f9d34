from pathlib import Path

import pytest

from specserve.check.survey import Outcome, Survey, survey
from specserve.errors import ConfigError
from specserve.rule_ids import RuleId
from tests.check.conftest import write

FACTS = Path(__file__).parent.parent / "data/facts"
HERE = "this machine"


def _outcomes(found: Survey) -> dict[str, Outcome]:
    return {outcome.words: outcome for outcome in (*found.experiments, *found.options)}


def test_what_ships_is_sound_and_nothing_is_left_out() -> None:
    found = survey([], [], None)

    assert () == found.failed
    assert {"+experiment=topk1_v2", "policy=cost_model", "model=demo"} <= set(_outcomes(found))


def test_a_users_configs_are_checked_with_the_shipped_ones(configs: Path) -> None:
    found = _outcomes(survey([], [configs], None))

    assert ("ok", "ok") == (found["+experiment=good"].status, found["policy=mine"].status)


def test_what_is_wrong_is_told_with_its_line(configs: Path) -> None:
    write(configs, {"experiment/bad.yaml": "# @package _global_\nserver:\n  prot: 1\n"})
    found = survey([], [configs], None)
    [bad] = found.failed
    [finding] = bad.findings

    assert ("+experiment=bad", RuleId.UNKNOWN_KEY) == (bad.words, finding.told.rule)
    assert (configs / "experiment/bad.yaml", 3) == (finding.place.file, finding.place.line)


def test_a_run_for_another_machine_is_no_fault(configs: Path) -> None:
    """No machine that runs these tests has 64 GPUs."""
    text = """\
        # @package _global_
        defaults:
          - override /engine: sglang
        model: {path: nobody/nothing}
        parallel: {tensor_parallel: 64}
        """
    write(configs, {"experiment/large.yaml": text})
    found = _outcomes(survey([], [configs], None))["+experiment=large"]

    assert "elsewhere" == found.status
    assert found.elsewhere is not None
    assert found.elsewhere.startswith("needs 64 GPUs, this machine has ")


def test_what_the_machine_of_the_facts_cannot_do_is_a_fault() -> None:
    found = _outcomes(survey([], [], FACTS / "h200.json"))["+experiment=kimi_k25_int4_topk1_v2"]

    assert "failed" == found.status
    assert RuleId.TOO_FEW_GPUS in {finding.told.rule for finding in found.findings}


def test_a_checkpoint_that_was_recorded_is_planned_with() -> None:
    found = _outcomes(survey([], [], FACTS / "kimi_k25.json"))
    kimi = found["+experiment=kimi_k25_int4_topk1_v2"]

    assert kimi.report is not None
    assert kimi.report.plan is not None
    assert "moonshotai/Kimi-K2.5" == kimi.report.plan.target.path


def test_overrides_hold_for_every_experiment() -> None:
    found = _outcomes(survey(["server.port=-1"], [], None))

    assert {"failed"} == {o.status for name, o in found.items() if name.startswith("+")}
    assert {"ok"} == {o.status for name, o in found.items() if not name.startswith("+")}


def test_a_folder_that_is_not_there_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="--config-dir"):
        survey([], [tmp_path / "none"], None)
