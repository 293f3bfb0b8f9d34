"""What no policy can know, and what no policy is needed for: the yardsticks of a replay."""

from collections.abc import Callable, Mapping
from math import ceil

from specserve.replay.costs import Costs, Round, best_depth
from specserve.replay.outcome import Outcome, Tally
from specserve.replay.trace import Trace


def oracle(trace: Trace, costs: Costs) -> Outcome:
    """In every round the depth that is best for its load and its true acceptance.

    Switching costs it nothing. A policy beats it only by rounds that last beyond a change of load.
    """
    return _settled(trace, costs, best_depth, "most tokens/s at the true acceptance")


def static(trace: Trace, costs: Costs, num_steps: int) -> Outcome:
    """The same depth in every round."""
    return _settled(trace, costs, lambda _: num_steps, "the same depth in every round")


def _settled(
    trace: Trace, costs: Costs, choose: Callable[[Mapping[int, Round]], int], reason: str
) -> Outcome:
    """Rounds as `replay` counts them, with a depth that only depends on the span."""
    tally = Tally()
    clock = 0.0
    for span in trace.spans:
        if span.running_decodes == 0 or clock >= span.end:
            continue
        clock = max(clock, span.begin)
        rounds = costs.rounds(span.running_decodes, span.acceptance)
        num_steps = choose(rounds)
        count = ceil((span.end - clock) / rounds[num_steps].seconds)
        tally.enter(clock, span.running_decodes, num_steps, reason)
        tally.add(num_steps, rounds[num_steps], count)
        clock += count * rounds[num_steps].seconds
    return tally.outcome()
