"""Refuse what does not fit into the device's memory, with the smallest change that does. (B01)"""

from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.plan.memory import Costs, largest_context, largest_num_rows
from specserve.plan.values import MemoryPlan

_SMALLEST_CONTEXT = 128  # below it no advice is worth giving


def rows_problems(
    config: RunConfig,
    cost: Costs,
    memory: MemoryPlan,
    usable: int,
    *,
    tokens_per_row: int,
    slack: int,
) -> list[Problem]:
    """For engine=torch: fewer requests or a shorter context, whichever there is."""
    if memory.total_bytes <= usable:
        return []
    if cost.weights >= usable:
        return [_weights_problem(config, cost, usable)]
    num_rows = config.scheduler.max_running_requests
    rows = largest_num_rows(cost, usable, tokens_per_row=tokens_per_row)
    context = largest_context(cost, usable, num_rows=num_rows, slack=slack)
    fixes = [f"scheduler.max_running_requests={rows}"] if rows else []
    fixes += [f"model.context_length={context}"] if context >= _SMALLEST_CONTEXT else []
    fix = "set " + ", or ".join(fixes) if fixes else "take a machine with more memory"
    return [
        Problem(
            key="scheduler.max_running_requests",
            value=num_rows,
            expected=f"a plan of at most {gib(usable)}, the device's usable memory; "
            f"{num_rows} rows of {tokens_per_row} tokens make {itemized(memory)}",
            fix=fix,
        )
    ]


def pool_problems(
    config: RunConfig, cost: Costs, usable: int, *, context_length: int, max_kv_tokens: int
) -> list[Problem]:
    """For SGLang: a smaller pool, or a shorter context where one request alone overfills it."""
    fitting = pool_tokens(cost, usable)
    if cost.weights >= usable:
        return [_weights_problem(config, cost, usable)]
    if context_length > fitting:
        return [
            Problem(
                key="model.context_length",
                value=context_length,
                expected=f"at most {fitting} tokens, which fit beside weights of "
                f"{gib(cost.weights)} in the {gib(usable)} usable of each GPU",
                fix=f"set model.context_length={fitting}",
            )
        ]
    if max_kv_tokens > fitting:
        return [
            Problem(
                key="scheduler.max_kv_tokens",
                value=max_kv_tokens,
                expected=f"at most {fitting} tokens, which fit beside weights of "
                f"{gib(cost.weights)} in the {gib(usable)} usable of each GPU",
                fix=f"set scheduler.max_kv_tokens={fitting}",
            )
        ]
    return []


def pool_tokens(cost: Costs, usable: int) -> int:
    """Tokens whose keys and values fit beside the weights."""
    return max(0, (usable - cost.weights) // cost.both_kv_per_token)


def itemized(memory: MemoryPlan) -> str:
    """The sum and its parts, for people."""
    parts = [f"{name} {gib(size)}" for name, size in memory.model_dump().items() if size]
    return f"{gib(memory.total_bytes)} ({', '.join(parts)})"


def gib(num_bytes: int) -> str:
    """Bytes for people, in binary units."""
    return f"{num_bytes / 2**30:,.2f} GiB"


def _weights_problem(config: RunConfig, cost: Costs, usable: int) -> Problem:
    if config.engine.kind == "sglang":
        fix = f"set parallel.tensor_parallel={2 * config.parallel.tensor_parallel}"
    elif config.quantization.kind == "none":
        fix = "set quantization=int8 or quantization=int4"
    else:
        fix = "take a device with more memory"
    return Problem(
        key="model.path",
        value=config.model.path,
        expected=f"weights of less than {gib(usable)}, the device's usable memory; target "
        f"{gib(cost.target_weights)} and draft {gib(cost.draft_weights)} leave no room",
        fix=f"{fix}, or take a device with more memory" if "set" in fix else fix,
    )
