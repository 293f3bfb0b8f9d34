import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.config.policy import BatchThresholdPolicy
from specserve.policy.batch_threshold import BatchThreshold
from tests.policy.loads import MAX_NUM_STEPS, Moment, depths, drive, switches


def make(disable_above: int, resume_at: int, min_dwell_rounds: int) -> BatchThreshold:
    config = BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=disable_above,
        resume_at=resume_at,
        min_dwell_rounds=min_dwell_rounds,
        while_off="skip",
    )
    return BatchThreshold(config, MAX_NUM_STEPS)


@pytest.mark.parametrize("above", [1, 4, 32])
def test_n_running_decodes_speculate_and_one_more_does_not(above: int) -> None:
    assert [3, 3, 0, 3] == depths(make(above, above, 0), [above - 1, above, above + 1, above])


def test_it_stays_off_until_resume_at() -> None:
    assert [3, 0, 0, 0, 3, 3, 3] == depths(make(4, 2, 0), [4, 5, 4, 3, 2, 3, 4])


def test_resume_at_zero_returns_when_nothing_decodes() -> None:
    assert [0, 0, 3] == depths(make(1, 0, 0), [2, 1, 0])


def test_a_mode_lasts_min_dwell_rounds_also_the_first() -> None:
    policy = make(4, 4, 3)

    assert [3, 3, 3, 0, 0, 0, 3] == depths(policy, [4, 5, 5, 5, 4, 4, 4])


def test_a_first_round_above_the_threshold_is_off() -> None:
    assert [0, 0, 0, 3] == depths(make(4, 4, 3), [5, 4, 4, 4])


def test_a_load_that_sits_at_the_threshold_does_not_thrash() -> None:
    """4, 5, 4, 5, … with hysteresis: one switch, and no way back until it falls to resume_at."""
    sawtooth = [4, 5] * 200

    assert 1 == switches(depths(make(4, 2, 0), sawtooth))
    assert 2 <= switches(depths(make(4, 4, 16), sawtooth)) <= 400 // 16


@given(trace=st.lists(st.integers(0, 12), max_size=200), above=st.integers(1, 10))
def test_without_hysteresis_and_dwell_it_is_the_bare_threshold(
    trace: list[int], above: int
) -> None:
    expected = [MAX_NUM_STEPS if running <= above else 0 for running in trace]

    assert expected == depths(make(above, above, 0), trace)


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
    load = [Moment(running) for running in trace]

    assert reason == drive(make(4, 2, 1), load)[-1].reason


def test_the_reason_says_when_the_dwell_holds_the_mode() -> None:
    assert (
        "1 running decodes; the last switch holds for 7 more of min_dwell_rounds=8"
        == drive(make(4, 4, 8), [Moment(5), Moment(1)])[-1].reason
    )
