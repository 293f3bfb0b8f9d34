"""What holds for every kind of policy, every parameter and every load (issue 4, part 3)."""

from hypothesis import given, settings
from hypothesis import strategies as st

from specserve.config.policy import (
    AcceptancePolicy,
    BatchThresholdPolicy,
    CostModelPolicy,
    DepthSchedulePolicy,
    PolicyConfig,
)
from specserve.policy.build import make_policy
from specserve.policy.depth_bounds import DepthBounds
from specserve.policy.observation import Policy
from specserve.testing.calibrations import make_calibration
from tests.policy.loads import (
    ACCEPTANCES,
    COST_MODELS,
    LOADS,
    MAX_NUM_STEPS,
    POLICIES,
    SCHEDULES,
    THRESHOLDS,
    Moment,
    depths,
    drive,
    switches,
)

CALIBRATION = make_calibration()


def made(config: PolicyConfig) -> Policy:
    return make_policy(config, MAX_NUM_STEPS, CALIBRATION)


@settings(max_examples=300)
@given(config=THRESHOLDS | SCHEDULES, load=LOADS)
def test_there_is_at_most_one_switch_for_each_dwell(
    config: BatchThresholdPolicy | DepthSchedulePolicy, load: list[Moment]
) -> None:
    taken = [decision.num_steps for decision in drive(made(config), load)]

    assert switches(taken) <= len(load) / max(config.min_dwell_rounds, 1)


@settings(max_examples=300)
@given(config=ACCEPTANCES | COST_MODELS, load=LOADS)
def test_only_bounds_switch_within_a_dwell_and_nothing_is_ever_outside_them(
    config: AcceptancePolicy | CostModelPolicy, load: list[Moment]
) -> None:
    bounds = DepthBounds(config.bounds, MAX_NUM_STEPS)
    limits = [bounds.limit(moment.running) for moment in load]

    taken = [decision.num_steps for decision in drive(made(config), load)]

    assert all(depth <= limit for depth, limit in zip(taken, limits, strict=True))
    held = 1
    for before, after, limit in zip(taken, taken[1:], limits[1:], strict=False):
        if before != after:
            assert before > limit or held >= config.min_dwell_rounds
            held = 0
        held += 1
    voluntary = sum(
        before != after and before <= limit
        for before, after, limit in zip(taken, taken[1:], limits[1:], strict=False)
    )
    assert voluntary <= len(load) / max(config.min_dwell_rounds, 1)


@settings(max_examples=300)
@given(config=POLICIES, load=LOADS)
def test_the_same_load_gets_the_same_decisions(config: PolicyConfig, load: list[Moment]) -> None:
    first = drive(made(config), load)

    assert first == drive(made(config), load)
    assert all(0 <= decision.num_steps <= MAX_NUM_STEPS for decision in first)
    assert all(decision.reason and "\n" not in decision.reason for decision in first)


@settings(max_examples=300)
@given(config=ACCEPTANCES | COST_MODELS, load=LOADS)
def test_looks_are_as_rare_as_promised(
    config: AcceptancePolicy | CostModelPolicy, load: list[Moment]
) -> None:
    """At most max(1, dwell) = L rounds after each explore_every_rounds others."""
    every, length = config.explore_every_rounds, max(1, config.min_dwell_rounds)
    looking = ["explores" in decision.reason for decision in drive(made(config), load)]

    if every == 0:
        assert not any(looking)
        return
    assert sum(looking) <= length * (1 + len(load) // (every + length))
    runs = "".join("L" if look else "." for look in looking).lstrip(".").rstrip("L.").split("L")
    assert all(len(run) == 0 or len(run) >= every for run in runs)


@given(config=THRESHOLDS, trace=st.lists(st.integers(0, 12), max_size=150))
def test_a_threshold_is_a_schedule_of_one_line(
    config: BatchThresholdPolicy, trace: list[int]
) -> None:
    """disable_above N, resume_at M: up to N the deepest, with a hysteresis of N - M."""
    schedule = DepthSchedulePolicy.model_validate(
        {
            "kind": "depth_schedule",
            "schedule": [{"up_to": config.disable_above, "num_steps": MAX_NUM_STEPS}],
            "hysteresis": config.disable_above - config.resume_at,
            "min_dwell_rounds": config.min_dwell_rounds,
            "while_off": "skip",
        }
    )

    assert depths(made(config), trace) == depths(made(schedule), trace)
