from itertools import pairwise

from hypothesis import given, settings

from specserve.config.policy import AlwaysPolicy, DepthSchedulePolicy
from specserve.export.ranges import boundaries, deepest, depth_ranges
from tests.export.runs import NUM_STEPS, policy_steps, schedule, schedules, threshold


def test_a_threshold_is_its_depth_up_to_n_and_0_from_there_on() -> None:
    assert ["6 steps at 1 to 8", "0 steps at 9 and more"] == [
        str(r) for r in depth_ranges(threshold(8), NUM_STEPS)
    ]


def test_always_is_one_range_without_an_end() -> None:
    assert ["6 steps at 1 and more"] == [
        str(r) for r in depth_ranges(AlwaysPolicy(kind="always"), NUM_STEPS)
    ]


def test_equal_neighbours_are_one_range_and_a_last_line_of_0_is_what_follows_anyway() -> None:
    ranges = depth_ranges(schedule((1, 4), (2, 2), (8, 2), (9, 0), (10, 0)), NUM_STEPS)

    assert ["4 steps at 1", "2 steps at 2 to 8", "0 steps at 9 and more"] == [
        str(r) for r in ranges
    ]
    assert (1, 8) == boundaries(ranges)
    assert 4 == deepest(ranges)


@given(schedules())
@settings(max_examples=50, deadline=None)
def test_ranges_are_the_policy_without_gaps(policy: DepthSchedulePolicy) -> None:
    ranges = depth_ranges(policy, NUM_STEPS)
    firsts = [1, *(end + 1 for end in boundaries(ranges))]

    assert firsts == [r.first for r in ranges]
    assert ranges[-1].last is None
    assert all(a.num_steps != b.num_steps for a, b in pairwise(ranges))
    assert policy_steps(policy) == {
        n: next(r.num_steps for r in ranges if r.last is None or n <= r.last)
        for n in policy_steps(policy)
    }
