from pathlib import Path

import pytest

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    Bounds,
    CostModelPolicy,
    DepthSchedulePolicy,
    DepthStep,
    OffPolicy,
    WhileOff,
)
from specserve.engine import Mode, PolicySwitch
from specserve.errors import ConfigError
from specserve.plan import DraftPlan, SpeculationPlan
from specserve.policy.observation import count_round
from specserve.testing.calibrations import make_calibration
from specserve.torch_engine.steering import Steering


def speculation(
    while_off: WhileOff = "skip", depths: tuple[int, ...] = (1, 2, 3)
) -> SpeculationPlan:
    draft = DraftPlan(
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
    )
    return SpeculationPlan(
        num_steps=3,
        depths=depths,
        topk=1,
        num_draft_tokens=4,
        while_off=while_off,
        draft=draft,
    )


def threshold(resume_at: int = 2, while_off: WhileOff = "warm") -> BatchThresholdPolicy:
    return BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=4,
        resume_at=resume_at,
        min_dwell_rounds=0,
        while_off=while_off,
    )


def schedule(*lines: tuple[int, int]) -> DepthSchedulePolicy:
    return DepthSchedulePolicy(
        kind="depth_schedule",
        schedule=[DepthStep(up_to=up_to, num_steps=num_steps) for up_to, num_steps in lines],
        hysteresis=0,
        min_dwell_rounds=0,
        while_off="warm",
    )


def acceptance() -> AcceptancePolicy:
    return AcceptancePolicy(
        kind="acceptance",
        min_acceptance=0.5,
        margin=0.0,
        window_rounds=1,
        explore_every_rounds=0,
        bounds=Bounds(schedule=[], disable_above=None),
        min_dwell_rounds=0,
        while_off="warm",
    )


def cost_model() -> CostModelPolicy:
    return CostModelPolicy(
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


def test_a_switch_is_counted_once_and_its_time_runs_from_it() -> None:
    now = [100.0]
    steering = Steering(threshold(), speculation(), clock=lambda: now[0])
    for running, seconds in ((4, 1.0), (5, 2.0), (6, 3.0)):
        now[0] += seconds
        steering.decide(running)
    state = steering.state()

    assert (Mode.PLAIN, 0, 1) == (state.mode, state.num_steps, state.switches)
    assert 3.0 == state.since_seconds
    assert "6 running decodes are more than disable_above=4" == state.reason


def test_a_new_policy_is_in_force_at_once() -> None:
    steering = Steering(AlwaysPolicy(kind="always"), speculation())

    state = steering.replace(OffPolicy(kind="off"), 1)

    assert (Mode.PLAIN, 1) == (state.mode, state.switches)
    assert OffPolicy(kind="off") == state.policy


def test_a_threshold_says_what_becomes_of_the_draft_while_off_else_the_plan_does() -> None:
    assert "warm" == Steering(threshold(), speculation("skip")).while_off
    assert "refill" == Steering(OffPolicy(kind="off"), speculation("refill")).while_off
    assert "skip" == Steering(OffPolicy(kind="off"), None).while_off


def test_a_change_of_depth_is_a_switch_that_says_what_it_saw() -> None:
    now = [100.0]
    steering = Steering(schedule((4, 3), (8, 1)), speculation(), clock=lambda: now[0])
    before = steering.state()
    now[0] += 1.0
    steering.decide(5)
    now[0] += 2.0
    state = steering.state()

    assert before.last_switch is None
    assert (Mode.SPECULATIVE, 1, 1, 2.0) == (
        state.mode,
        state.num_steps,
        state.switches,
        state.since_seconds,
    )
    assert (
        PolicySwitch(
            from_num_steps=3,
            to_num_steps=1,
            running_decodes=5,
            reason="5 running decodes are at most up_to=8: num_steps=1",
            round=2,
            elapsed_seconds=1.0,
        )
        == state.last_switch
    )


def test_a_policy_sees_each_settled_round_once() -> None:
    """One round without a hit tells a window of one round a lot; without news it stays so."""
    steering = Steering(acceptance(), speculation())
    steering.observe_round(count_round(3, 3, [0, 0]))
    steering.decide(2)
    reasons = [steering.state().reason]
    for _ in range(2):
        steering.decide(2)
        reasons.append(steering.state().reason)

    assert "acceptance of draft token 1 is 0.20" in reasons[0]
    assert reasons[0] == reasons[1] == reasons[2]


def test_what_was_not_built_is_refused_and_the_old_policy_stays() -> None:
    steering = Steering(AlwaysPolicy(kind="always"), speculation("warm"))

    with pytest.raises(ConfigError, match=r"policy\.while_off='refill'.*set policy.while_off=warm"):
        steering.replace(threshold(while_off="refill"), 1)
    with pytest.raises(ConfigError, match=r"policy\.resume_at=9.*set policy\.resume_at=4"):
        steering.replace(threshold(resume_at=9), 1)
    assert AlwaysPolicy(kind="always") == steering.state().policy
    with pytest.raises(ConfigError, match=r"policy='always'.*no draft was built"):
        Steering(AlwaysPolicy(kind="always"), None)


def test_the_runs_own_calibration_can_be_returned_to() -> None:
    steering = Steering(cost_model(), speculation(), make_calibration())
    steering.replace(OffPolicy(kind="off"), 1)

    state = steering.replace(cost_model(), 1)

    assert cost_model() == state.policy
    assert 3 == state.num_steps
