from itertools import pairwise

import pytest

from specserve.config.policy import DepthSchedulePolicy
from specserve.policy.depth_schedule import DepthSchedule
from tests.policy.loads import MAX_NUM_STEPS, Moment, depths, drive, table


def make(*lines: tuple[int, int], hysteresis: int = 0, min_dwell_rounds: int = 0) -> DepthSchedule:
    config = DepthSchedulePolicy(
        kind="depth_schedule",
        schedule=table(*lines),
        hysteresis=hysteresis,
        min_dwell_rounds=min_dwell_rounds,
        while_off="skip",
    )
    return DepthSchedule(config, MAX_NUM_STEPS)


@pytest.mark.parametrize("end", [1, 4, 32])
def test_one_fewer_and_as_many_as_a_lines_end_have_its_depth_and_one_more_has_not(end: int) -> None:
    policy = make((end, 2), (end + 8, 1))

    assert [2, 2, 1, 2] == depths(policy, [end - 1, end, end + 1, end])
    assert [1, 1, 0] == depths(policy, [end + 7, end + 8, end + 9])


def test_a_depth_returns_hysteresis_below_its_lines_end() -> None:
    policy = make((4, 3), (8, 1), hysteresis=2)

    assert [3, 1, 1, 1, 3, 3] == depths(policy, [4, 5, 4, 3, 2, 4])
    assert [0, 0, 0, 1] == depths(policy, [9, 8, 7, 6])


def test_a_depth_lasts_min_dwell_rounds_also_the_first() -> None:
    policy = make((4, 3), min_dwell_rounds=3)

    assert [3, 3, 3, 0, 0, 0, 3] == depths(policy, [4, 5, 5, 5, 4, 4, 4])


def test_a_table_is_never_deeper_than_what_was_built() -> None:
    assert [MAX_NUM_STEPS] == depths(make((4, 9)), [1])


def test_a_sawtooth_at_a_lines_end_switches_once_per_dwell() -> None:
    taken = depths(make((4, 3), min_dwell_rounds=16), [4, 5] * 200)

    changes = [index for index in range(1, len(taken)) if taken[index] != taken[index - 1]]
    assert changes
    assert all(later - earlier >= 16 for earlier, later in pairwise(changes))


@pytest.mark.parametrize(
    ("trace", "reason"),
    [
        ([4], "4 running decodes are at most up_to=4: num_steps=3"),
        ([9], "9 running decodes are more than the schedule's last up_to=8"),
        (
            [5, 4],
            "4 running decodes: num_steps=1 stays, whose line begins within hysteresis=2",
        ),
    ],
)
def test_the_reason_has_the_numbers(trace: list[int], reason: str) -> None:
    policy = make((4, 3), (8, 1), hysteresis=2)

    assert reason == drive(policy, [Moment(running) for running in trace])[-1].reason


def test_the_reason_says_when_the_dwell_holds_the_depth() -> None:
    decision = drive(make((4, 3), min_dwell_rounds=8), [Moment(4), Moment(5)])[-1]

    assert (3, "5 running decodes; the last switch holds for 7 more of min_dwell_rounds=8") == (
        decision.num_steps,
        decision.reason,
    )
