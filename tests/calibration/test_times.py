import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.calibration.times import RoundTimes
from specserve.testing.calibrations import make_calibration

TIMES = RoundTimes(
    make_calibration(
        batch_sizes=[2, 4, 8],
        round_seconds={0: [1.0, 2.0, 6.0], 2: [4.0, 5.0, 3.0]},
        acceptance=[0.5, 0.5],
    ),
    [0, 2],
)


@pytest.mark.parametrize(
    ("running", "seconds"),
    [
        (0, [1.0, 4.0]),  # below the first size as there
        (1, [1.0, 4.0]),
        (2, [1.0, 4.0]),
        (3, [1.5, 4.5]),
        (4, [2.0, 5.0]),
        (5, [3.0, 4.5]),
        (8, [6.0, 3.0]),
        (10, [8.0, 3.0]),  # along the last slope, but never less than the last time
    ],
)
def test_times_lie_on_the_line_between_the_measured_ones(
    running: int, seconds: list[float]
) -> None:
    assert pytest.approx(seconds) == TIMES.at(running)


def test_one_batch_size_gives_one_time() -> None:
    times = RoundTimes(
        make_calibration(batch_sizes=[4], round_seconds={0: [2.0]}, acceptance=[]), [0]
    )

    assert [[2.0]] * 3 == [times.at(running) for running in (1, 4, 100)]


def test_only_the_depths_that_were_asked_for_in_their_order() -> None:
    calibration = make_calibration()

    assert [0.0135, 0.0100] == RoundTimes(calibration, [3, 0]).at(1)
    with pytest.raises(KeyError):
        RoundTimes(calibration, [4])


@given(
    sizes=st.lists(st.integers(1, 50), unique=True, min_size=1, max_size=6).map(sorted),
    seconds=st.lists(st.floats(1e-4, 1), min_size=6, max_size=6),
    running=st.integers(0, 200),
)
def test_every_load_has_a_positive_time_between_its_neighbours(
    sizes: list[int], seconds: list[float], running: int
) -> None:
    measured = seconds[: len(sizes)]
    calibration = make_calibration(batch_sizes=sizes, round_seconds={0: measured}, acceptance=[])
    [time] = RoundTimes(calibration, [0]).at(running)

    assert time > 0
    if running <= sizes[-1]:
        assert min(measured) * 0.999 <= time <= max(measured) * 1.001
    else:
        assert time >= measured[-1]
