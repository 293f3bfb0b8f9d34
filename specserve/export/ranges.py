"""A policy that looks at the number of running decodes only, as ranges of one depth each."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import assert_never

from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy, DepthSchedulePolicy

TabularPolicy = AlwaysPolicy | BatchThresholdPolicy | DepthSchedulePolicy


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthRange:
    """`num_steps` from `first` to `last` running decodes, both inclusive; `last` None: no end."""

    first: int
    last: int | None
    num_steps: int

    def __str__(self) -> str:
        return f"{self.num_steps} steps at {self.first}{_until(self.first, self.last)}"


def depth_ranges(policy: TabularPolicy, num_steps: int) -> tuple[DepthRange, ...]:
    """What the policy wants at each number of running decodes, without hysteresis and dwell.

    The ranges cover 1, 2, … without a gap, and neighbours differ in depth; the last has no end.
    `num_steps` is the depth that the run is built for.
    """
    match policy:
        case AlwaysPolicy():
            return (DepthRange(first=1, last=None, num_steps=num_steps),)
        case BatchThresholdPolicy():
            return tuple(_ranges([(policy.disable_above, num_steps)]))
        case DepthSchedulePolicy():
            return tuple(_ranges([(line.up_to, line.num_steps) for line in policy.schedule]))
        case _:
            assert_never(policy)


def boundaries(ranges: Sequence[DepthRange]) -> tuple[int, ...]:
    """The last number of running decodes of each range: one more, and the depth is another."""
    return tuple(r.last for r in ranges if r.last is not None)


def deepest(ranges: Sequence[DepthRange]) -> int:
    """The most draft steps that any range asks for."""
    return max(r.num_steps for r in ranges)


def _ranges(lines: Sequence[tuple[int, int]]) -> Iterator[DepthRange]:
    """Lines of (last, depth), increasing; equal neighbours become one, above the lines it is 0."""
    first = 1
    for (last, depth), (_, next_depth) in zip(lines, [*lines[1:], (None, 0)], strict=True):
        if depth != next_depth:
            yield DepthRange(first=first, last=last, num_steps=depth)
            first = last + 1
    yield DepthRange(first=first, last=None, num_steps=0)


def _until(first: int, last: int | None) -> str:
    if last is None:
        return " and more"
    return "" if last == first else f" to {last}"
