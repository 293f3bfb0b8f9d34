"""Round times for any number of running decodes, between and beyond the measured batch sizes."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from specserve.calibration.table import Calibration


class _Line(NamedTuple):
    """Seconds of each depth at `begin` running decodes, and what each further one adds."""

    begin: int
    seconds: tuple[float, ...]
    slopes: tuple[float, ...]


class RoundTimes:
    """Seconds of a round of each of `num_steps`, in their order.

    Linear between measured batch sizes; below the first one as there; beyond the last one along
    the last slope, but never less than there. Raises KeyError for a depth that was not measured.
    """

    def __init__(self, calibration: Calibration, num_steps: Sequence[int]) -> None:
        measured = {depth.num_steps: depth.round_seconds for depth in calibration.depths}
        by_size = list(zip(*(measured[steps] for steps in num_steps), strict=True))
        self._sizes = calibration.batch_sizes
        self._lines = tuple(_lines(self._sizes, by_size))

    def at(self, running: int) -> list[float]:
        """Seconds with `running` decodes."""
        begin, seconds, slopes = self._lines[bisect_left(self._sizes, running)]
        further = running - begin
        return [at + slope * further for at, slope in zip(seconds, slopes, strict=True)]


def _lines(sizes: Sequence[int], by_size: Sequence[tuple[float, ...]]) -> Iterator[_Line]:
    """For up to the first size, for up to each further one, and for beyond the last."""
    level = (0.0,) * len(by_size[0])
    yield _Line(sizes[0], by_size[0], level)
    slopes = level
    for last in range(1, len(sizes)):
        width = sizes[last] - sizes[last - 1]
        ends = zip(by_size[last - 1], by_size[last], strict=True)
        slopes = tuple((end - begin) / width for begin, end in ends)
        yield _Line(sizes[last - 1], by_size[last - 1], slopes)
    yield _Line(sizes[-1], by_size[-1], tuple(max(slope, 0.0) for slope in slopes))
