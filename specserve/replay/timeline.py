"""A replay over time: which depth was in force when, and what it earned then."""

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from specserve.replay.costs import Costs
from specserve.replay.outcome import Outcome
from specserve.replay.trace import Span, Trace


class Moment(NamedTuple):
    """What holds from `begin` seconds on; `num_steps` is None while nothing decodes."""

    begin: float
    num_steps: int | None
    tokens_per_second: float


def moments(trace: Trace, outcome: Outcome, costs: Costs) -> Iterator[Moment]:
    """Every change of load or depth, in order. The rate is that of the depth at that load."""
    begins = [stay.begin for stay in outcome.stays]
    for span in trace.spans:
        if span.running_decodes == 0:
            yield Moment(span.begin, None, 0.0)
            continue
        rounds = costs.rounds(span.running_decodes, span.acceptance)
        first = max(bisect_right(begins, span.begin) - 1, 0)
        for index in range(first, len(begins)):
            if begins[index] >= span.end:
                break
            num_steps = outcome.stays[index].num_steps
            yield Moment(max(begins[index], span.begin), num_steps, rounds[num_steps].rate)


def span_at(trace: Trace, seconds: float) -> Span:
    """The load at that time, of 0 up to the end of the trace."""
    return trace.spans[bisect_right(trace.spans, seconds, key=lambda span: span.begin) - 1]


def depths_at(trace: Trace, outcome: Outcome, times: Sequence[float]) -> list[int | None]:
    """The depth in force at each time, None while nothing decodes."""
    begins = [stay.begin for stay in outcome.stays]
    return [
        outcome.stays[max(bisect_right(begins, time) - 1, 0)].num_steps
        if span_at(trace, time).running_decodes
        else None
        for time in times
    ]
