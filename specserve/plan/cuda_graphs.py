"""Which batch sizes are captured as CUDA graphs, and what they leave uncovered. In requests."""

from collections.abc import Sequence
from typing import assert_never

from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy, OffPolicy, PolicyConfig
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.plan.execution import Device
from specserve.plan.notes import Notes

KEY = "cuda_graph.batch_sizes"


def choose_batch_sizes(config: RunConfig, device: Device, notes: Notes) -> tuple[int, ...]:
    """`auto`: powers of two up to the admission limit, and the limit; none on a CPU."""
    asked = config.cuda_graph.batch_sizes
    if config.cuda_graph.kind == "off":
        notes.adjust(KEY, asked, [], "cuda_graph.kind=off")
        return ()
    if device == "cpu":
        if asked != "auto":
            notes.refuse([_no_graphs_on_a_cpu(asked)])
        notes.adjust(KEY, asked, [], "a CPU has no CUDA graphs")
        return ()
    if asked == "auto":
        sizes = ladder(config.scheduler.max_running_requests)
        notes.adjust(KEY, "auto", list(sizes), "covers every batch that can be admitted")
        return sizes
    return tuple(asked)


def ladder(largest: int) -> tuple[int, ...]:
    """1, 2, 4, … below `largest`, and `largest` itself."""
    powers = (1 << exponent for exponent in range(largest.bit_length()))
    return (*(size for size in powers if size < largest), largest)


def coverage_warnings(
    sizes: Sequence[int],
    policy: PolicyConfig,
    *,
    max_running_requests: int,
    num_draft_tokens: int | None,
) -> list[str]:
    """A warning with what every mode needs, if some batch falls off the ladder and runs uncaptured.

    Plain decoding needs the whole admission limit under any policy, because a request may opt out
    of speculation. `num_draft_tokens` is None without speculation. Empty `sizes` mean that
    nothing is captured, which is said elsewhere.
    """
    needs = [("plain", max_running_requests, 1)]
    if num_draft_tokens is not None:
        needs.append(("verify", verify_limit(policy, max_running_requests), num_draft_tokens))
    largest = max(sizes, default=max_running_requests)
    if all(limit <= largest for _, limit, _ in needs):
        return []
    modes = [
        f"{mode} mode needs {limit} requests ({limit * tokens} tokens a step), "
        + (f"{largest + 1} to {limit} uncovered" if limit > largest else "covered")
        for mode, limit, tokens in needs
    ]
    return [
        f"{KEY} ends at {largest} requests: {'; '.join(modes)}. Uncovered steps run without a "
        f"graph: raise {KEY} or lower scheduler.max_running_requests"
    ]


def verify_limit(policy: PolicyConfig, max_running_requests: int) -> int:
    """The largest batch, in requests, in which the policy speculates."""
    match policy:
        case OffPolicy():
            return 0
        case AlwaysPolicy():
            return max_running_requests
        case BatchThresholdPolicy():
            return min(policy.disable_above, max_running_requests)
        case _:
            assert_never(policy)


def _no_graphs_on_a_cpu(asked: list[int]) -> Problem:
    return Problem(
        key=KEY,
        value=asked,
        expected="auto on a CPU, which has no CUDA graphs",
        fix=f"set {KEY}=auto",
    )
