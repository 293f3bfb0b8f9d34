import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.config.policy import BatchThresholdPolicy
from specserve.policy.batch_threshold import BatchThreshold
from specserve.policy.observation import Decision, Observation

NUM_STEPS = 3


def config(disable_above: int, resume_at: int, min_dwell_rounds: int) -> BatchThresholdPolicy:
    return BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=disable_above,
        resume_at=resume_at,
        min_dwell_rounds=min_dwell_rounds,
        while_off="skip",
    )


def replay(policy: BatchThreshold, trace: list[int]) -> list[Decision]:
    return [
        policy.decide(
            Observation(running_decodes=running, drafted=0, accepted=0, elapsed_seconds=0.0)
        )
        for running in trace
    ]


def depths(policy: BatchThreshold, trace: list[int]) -> list[int]:
    return [decision.num_steps for decision in replay(policy, trace)]


def switches(trace_depths: list[int]) -> int:
    before = [NUM_STEPS, *trace_depths]
    return sum(a != b for a, b in zip(before, trace_depths, strict=False))


@pytest.mark.parametrize("above", [1, 4, 32])
def test_n_running_decodes_speculate_and_one_more_does_not(above: int) -> None:
    policy = BatchThreshold(config(above, above, 0), NUM_STEPS)

    assert [3, 3, 0, 3] == depths(policy, [above - 1, above, above + 1, above])


def test_it_stays_off_until_resume_at() -> None:
    policy = BatchThreshold(config(4, 2, 0), NUM_STEPS)

    assert [3, 0, 0, 0, 3, 3, 3] == depths(policy, [4, 5, 4, 3, 2, 3, 4])


def test_resume_at_zero_returns_when_nothing_decodes() -> None:
    policy = BatchThreshold(config(1, 0, 0), NUM_STEPS)

    assert [0, 0, 3] == depths(policy, [2, 1, 0])


def test_a_mode_entered_by_a_switch_lasts_min_dwell_rounds() -> None:
    policy = BatchThreshold(config(4, 4, 3), NUM_STEPS)

    assert [3, 0, 0, 0, 3, 3, 3, 0] == depths(policy, [4, 5, 4, 4, 4, 5, 5, 5])


def test_a_load_that_sits_at_the_threshold_does_not_thrash() -> None:
    """4, 5, 4, 5, … with hysteresis: one switch, and no way back until it falls to resume_at."""
    sawtooth = [4, 5] * 200

    assert 1 == switches(depths(BatchThreshold(config(4, 2, 0), NUM_STEPS), sawtooth))
    assert 400 // 16 >= switches(depths(BatchThreshold(config(4, 4, 16), NUM_STEPS), sawtooth))


@given(
    trace=st.lists(st.integers(0, 12), max_size=200),
    above=st.integers(1, 10),
    below=st.integers(0, 10),
    dwell=st.integers(0, 20),
)
def test_switches_are_bounded_by_the_dwell_and_decisions_repeat(
    trace: list[int], above: int, below: int, dwell: int
) -> None:
    settings = config(above, max(above - below, 0), dwell)

    first = replay(BatchThreshold(settings, NUM_STEPS), trace)

    assert switches([decision.num_steps for decision in first]) <= len(trace) / max(dwell, 1) + 1
    assert first == replay(BatchThreshold(settings, NUM_STEPS), trace)


@given(trace=st.lists(st.integers(0, 12), max_size=200), above=st.integers(1, 10))
def test_without_hysteresis_it_is_the_bare_threshold(trace: list[int], above: int) -> None:
    settings = config(above, above, 0)

    assert [NUM_STEPS if running <= above else 0 for running in trace] == depths(
        BatchThreshold(settings, NUM_STEPS), trace
    )


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        ([5], "5 running decodes are more than disable_above=4"),
        ([5, 2], "2 running decodes are at most resume_at=2"),
        ([5, 3], "3 running decodes lie between resume_at=2 and disable_above=4: stays off"),
        ([3], "3 running decodes lie between resume_at=2 and disable_above=4: stays on"),
    ],
)
def test_the_reason_has_the_numbers(trace: list[int], reason: str) -> None:
    assert reason == replay(BatchThreshold(config(4, 2, 1), NUM_STEPS), trace)[-1].reason


def test_the_reason_says_when_the_dwell_holds_the_mode() -> None:
    policy = BatchThreshold(config(4, 4, 8), NUM_STEPS)

    assert (
        "1 running decodes; the last switch holds for 7 more of min_dwell_rounds=8"
        == replay(policy, [5, 1])[-1].reason
    )
