import pytest

from specserve.config.policy import (
    AlwaysPolicy,
    BatchThresholdPolicy,
    DepthSchedulePolicy,
    DepthStep,
    OffPolicy,
)
from specserve.engine import Mode
from specserve.errors import ConfigError
from specserve.testing.scripted_policy import ScriptedPolicy

THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=4, resume_at=2, min_dwell_rounds=0, while_off="warm"
)


def test_a_switch_is_remembered_with_what_led_to_it() -> None:
    policy = ScriptedPolicy(THRESHOLD, 3)
    for running in (4, 5, 5):
        policy.follow(running)
    state = policy.state()
    switch = state.last_switch

    assert (Mode.PLAIN, 0, 1) == (state.mode, state.num_steps, state.switches)
    assert switch is not None
    assert (3, 0, 5, 3) == (
        switch.from_num_steps,
        switch.to_num_steps,
        switch.running_decodes,
        switch.round,
    )
    assert "5 running decodes are more than disable_above=4" == switch.reason


def test_a_new_policy_is_in_force_at_once() -> None:
    state = ScriptedPolicy(AlwaysPolicy(kind="always"), 3).replace(OffPolicy(kind="off"), 1)

    assert (Mode.PLAIN, 1) == (state.mode, state.switches)


def test_a_depth_that_was_not_built_is_refused_and_the_old_policy_stays() -> None:
    policy = ScriptedPolicy(THRESHOLD, 3)
    deeper = DepthSchedulePolicy(
        kind="depth_schedule",
        schedule=[DepthStep(up_to=4, num_steps=5)],
        hysteresis=0,
        min_dwell_rounds=0,
        while_off="warm",
    )

    with pytest.raises(ConfigError, match="at most 3"):
        policy.replace(deeper, 1)
    assert THRESHOLD == policy.state().policy
