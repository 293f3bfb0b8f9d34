import pytest

from specserve.calibration.table import Calibration
from specserve.replay.costs import Costs
from specserve.replay.outcome import Outcome, Stay
from specserve.replay.timeline import depths_at, moments, span_at
from specserve.replay.trace import Row, hold

TRACE = hold(
    [
        Row(time=t, running_decodes=n, acceptance=(0.5,))
        for t, n in [(0, 4), (1, 8), (3, 0), (4, 2), (5, 0)]
    ],
    "here",
)
OUTCOME = Outcome(
    by_depth={},
    stays=tuple(
        Stay(begin=begin, running_decodes=1, num_steps=depth, reason="")
        for begin, depth in [(0.0, 1), (2.0, 0), (4.5, 1)]
    ),
)


def test_the_load_of_a_time_is_that_of_the_last_row() -> None:
    assert [4, 4, 8, 0, 2] == [
        span_at(TRACE, time).running_decodes for time in (0, 0.9, 1.0, 3.5, 4.9)
    ]


def test_the_depth_of_a_time_is_that_of_the_last_switch_and_none_while_idle() -> None:
    assert [1, 1, 0, None, 0, 1] == depths_at(TRACE, OUTCOME, [0, 1.9, 2.0, 3.5, 4.4, 4.5])


def test_moments_are_the_changes_of_load_and_of_depth(calibration: Calibration) -> None:
    costs = Costs(calibration, 1)
    course = list(moments(TRACE, OUTCOME, costs))

    assert [(0, 1), (1, 1), (2, 0), (3, None), (4, 0), (4.5, 1)] == [
        (moment.begin, moment.num_steps) for moment in course
    ]
    assert pytest.approx(4 * 1.5 / 0.0057) == course[0].tokens_per_second
    assert pytest.approx(8 / 0.005) == course[2].tokens_per_second
    assert 0 == course[3].tokens_per_second
