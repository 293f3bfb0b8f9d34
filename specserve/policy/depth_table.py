"""A table of depths by running decodes, and its hysteresis."""

from bisect import bisect_left
from collections.abc import Sequence

from specserve.config.policy import DepthStep


class DepthTable:
    """Lines up to a number of running decodes, inclusive; above the last line the depth is 0."""

    def __init__(self, steps: Sequence[DepthStep]) -> None:
        self._ends = [step.up_to for step in steps]
        self._depths = [*(step.num_steps for step in steps), 0]

    def depth(self, running: int) -> int:
        """The depth of the line in which `running` lies."""
        return self._depths[bisect_left(self._ends, running)]

    def steady_depth(self, running: int, num_steps: int | None, hysteresis: int) -> int:
        """As `depth`, but the depth in force, `num_steps`, stays within `hysteresis` of its line.

        That is: while it is the depth of `running` or of up to `hysteresis` more.
        """
        first = bisect_left(self._ends, running)
        last = bisect_left(self._ends, running + hysteresis)
        for depth in self._depths[first : last + 1]:
            if depth == num_steps:
                return depth
        return self._depths[first]

    def end(self, running: int) -> int | None:
        """Where the line of `running` ends, inclusive; None above the last line."""
        line = bisect_left(self._ends, running)
        return self._ends[line] if line < len(self._ends) else None
