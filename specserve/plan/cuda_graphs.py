"""Which batch sizes are captured as CUDA graphs, and what they leave uncovered. In requests."""

from collections.abc import Sequence
from typing import assert_never

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    Bounds,
    CostModelPolicy,
    DepthSchedulePolicy,
    DepthTable,
    OffPolicy,
    PolicyConfig,
)
from specserve.config.run import RunConfig
from specserve.errors import Doubt, Problem
from specserve.plan.execution import Device
from specserve.plan.notes import Notes
from specserve.rule_ids import RuleId

KEY = "cuda_graph.batch_sizes"


def has_graphs(config: RunConfig, device: Device) -> bool:
    """Whether passes are captured at all."""
    return device == "cuda" and config.cuda_graph.kind != "off"


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
    sizes = batch_sizes_of(config, device, config.scheduler.max_running_requests)
    if asked == "auto":
        notes.adjust(KEY, "auto", list(sizes), "covers every batch that can be admitted")
    return sizes


def batch_sizes_of(config: RunConfig, device: Device, max_running_requests: int) -> tuple[int, ...]:
    """What would be captured under this admission limit."""
    if not has_graphs(config, device):
        return ()
    asked = config.cuda_graph.batch_sizes
    return ladder(max_running_requests) if asked == "auto" else tuple(asked)


def ladder(largest: int) -> tuple[int, ...]:
    """1, 2, 4, … below `largest`, and `largest` itself."""
    powers = (1 << exponent for exponent in range(largest.bit_length()))
    return (*(size for size in powers if size < largest), largest)


def coverage_doubts(
    sizes: Sequence[int],
    policy: PolicyConfig,
    *,
    max_running_requests: int,
    num_draft_tokens: int | None,
) -> list[Doubt]:
    """A doubt with what every mode needs, if some batch falls off the ladder and runs uncaptured.

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
        Doubt(
            rule=RuleId.GRAPHS_UNCOVERED,
            key=KEY,
            text=f"{KEY} ends at {largest} requests: {'; '.join(modes)}. Uncovered steps run "
            f"without a graph: raise {KEY} or lower scheduler.max_running_requests",
        )
    ]


def verify_limit(policy: PolicyConfig, max_running_requests: int) -> int:
    """The largest batch, in requests, in which the policy speculates, but for a dwell."""
    match policy:
        case OffPolicy():
            return 0
        case AlwaysPolicy():
            return max_running_requests
        case BatchThresholdPolicy():
            return min(policy.disable_above, max_running_requests)
        case DepthSchedulePolicy():
            return min(_last_speculative(policy.schedule), max_running_requests)
        case AcceptancePolicy() | CostModelPolicy():
            return _bounded(policy.bounds, max_running_requests)
        case _:
            assert_never(policy)


def _bounded(bounds: Bounds, max_running_requests: int) -> int:
    limit = max_running_requests
    if bounds.disable_above is not None:
        limit = min(limit, bounds.disable_above)
    return min(limit, _last_speculative(bounds.schedule)) if bounds.schedule else limit


def _last_speculative(table: DepthTable) -> int:
    return max((step.up_to for step in table if step.num_steps), default=0)


def _no_graphs_on_a_cpu(asked: list[int]) -> Problem:
    return Problem(
        rule=RuleId.GRAPHS_ON_A_CPU,
        key=KEY,
        value=asked,
        expected="auto on a CPU, which has no CUDA graphs",
        fix=f"set {KEY}=auto",
    )
