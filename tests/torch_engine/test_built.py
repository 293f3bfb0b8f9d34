"""What a running worker refuses to be steered by, in the words of the command line."""

from pathlib import Path

import pytest

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    Bounds,
    CostModelPolicy,
    DepthSchedulePolicy,
    DepthStep,
    OffPolicy,
    PolicyConfig,
)
from specserve.errors import ConfigError, Problem
from specserve.plan import DraftPlan, SpeculationPlan
from specserve.testing.calibrations import make_calibration
from specserve.torch_engine.built import Built, refuse_unbuilt


def speculation(*depths: int) -> SpeculationPlan:
    return SpeculationPlan(
        num_steps=3,
        depths=depths,
        topk=1,
        num_draft_tokens=4,
        while_off="warm",
        draft=DraftPlan(
            path=str(Path("draft")),
            config={},
            dtype="float32",
            quantization="none",
            quantization_group_size=None,
            aux_layer_inputs=(2, 4, 5),
            draft_vocab_size=10,
            num_kv_heads=1,
            head_dim=8,
            borrowed=(),
        ),
    )


def schedule(*lines: tuple[int, int], hysteresis: int = 0) -> DepthSchedulePolicy:
    return DepthSchedulePolicy(
        kind="depth_schedule",
        schedule=[DepthStep(up_to=up_to, num_steps=num_steps) for up_to, num_steps in lines],
        hysteresis=hysteresis,
        min_dwell_rounds=0,
        while_off="warm",
    )


ACCEPTANCE = AcceptancePolicy(
    kind="acceptance",
    min_acceptance=0.5,
    margin=0.0,
    window_rounds=8,
    explore_every_rounds=0,
    bounds=Bounds(schedule=[], disable_above=None),
    min_dwell_rounds=0,
    while_off="warm",
)
COST_MODEL = CostModelPolicy(
    kind="cost_model",
    calibration="/own.json",
    margin=0.0,
    max_inter_token_ms=None,
    window_rounds=8,
    explore_every_rounds=0,
    bounds=Bounds(schedule=[], disable_above=None),
    min_dwell_rounds=0,
    while_off="warm",
)
CALIBRATION = make_calibration()


def problems(policy: PolicyConfig, built: Built) -> tuple[Problem, ...]:
    with pytest.raises(ConfigError) as refused:
        refuse_unbuilt(policy, built)
    return refused.value.problems


@pytest.mark.parametrize(
    "policy", [OffPolicy(kind="off"), AlwaysPolicy(kind="always"), schedule((4, 3)), COST_MODEL]
)
def test_what_was_built_is_accepted(policy: PolicyConfig) -> None:
    refuse_unbuilt(policy, Built(speculation(1, 2, 3), CALIBRATION, "/own.json"))


def test_without_a_draft_there_is_only_off() -> None:
    refuse_unbuilt(OffPolicy(kind="off"), Built(None, None, None))

    [problem] = problems(schedule((4, 3)), Built(None, None, None))
    assert ("policy", "depth_schedule") == (problem.key, problem.value)


@pytest.mark.parametrize("policy", [schedule((4, 3), (8, 2)), ACCEPTANCE, COST_MODEL])
def test_a_depth_without_its_graphs_is_refused(policy: PolicyConfig) -> None:
    built = Built(speculation(1, 3), CALIBRATION, "/own.json")

    [problem] = problems(policy, built)

    assert ("policy", policy.kind) == (problem.key, problem.value)
    assert "depths [1, 3]" in problem.expected
    assert "[2]" in problem.expected


def test_the_rules_of_the_configuration_hold_at_run_time_too() -> None:
    built = Built(speculation(1, 2, 3), None, None)

    found = problems(schedule((8, 9), (4, 1), hysteresis=5), built)

    assert {"policy.schedule", "policy.hysteresis"} == {problem.key for problem in found}
    assert any("at most 3" in problem.expected for problem in found)


def test_another_calibration_is_refused_with_both_names() -> None:
    other = COST_MODEL.model_copy(update={"calibration": "/other.json"})

    [problem] = problems(other, Built(speculation(1, 2, 3), CALIBRATION, "/own.json"))

    assert ("policy.calibration", "/other.json") == (problem.key, problem.value)
    assert "/own.json" in problem.expected
    assert problem.fix.startswith("set policy.calibration=/own.json, or start with")


def test_a_run_without_a_calibration_says_how_to_start_with_one() -> None:
    [problem] = problems(COST_MODEL, Built(speculation(1, 2, 3), None, None))

    assert "start with policy=cost_model policy.calibration=/own.json" == problem.fix


def test_the_store_of_refill_must_have_been_built() -> None:
    refill = ACCEPTANCE.model_copy(update={"while_off": "refill"})

    [problem] = problems(refill, Built(speculation(1, 2, 3), None, None))

    assert ("policy.while_off", "refill") == (problem.key, problem.value)
