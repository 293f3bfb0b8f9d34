"""Refuse what does not fit into the device's memory, with the smallest change that does. (B01)"""

from bisect import bisect_left
from collections.abc import Callable, Iterator

from specserve.config.engine import SglangEngineConfig
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.plan.execution import gpus_per_node
from specserve.plan.memory import Allocation, Costs, rows_memory
from specserve.plan.room import Room
from specserve.plan.rows import row_tokens
from specserve.rule_ids import RuleId

_SMALLEST_CONTEXT = 128  # below it no advice is worth giving
_MOST_GPUS = 64


def rows_problems(
    config: RunConfig,
    room: Room,
    allocation: Allocation,
    *,
    tokens_per_row: int,
    slack: int,
) -> list[Problem]:
    """For engine=torch: fewer requests or a shorter context, whichever there is."""
    usable, num_rows = room.usable, config.scheduler.max_running_requests
    if usable is None or allocation.total <= usable:
        return []
    if room.cost.weights >= room.usable_at(1, _SMALLEST_CONTEXT + slack):
        return [_weights_problem(config, room, usable, context_length=0)]

    def fits(rows: int, tokens: int) -> bool:
        needed = rows_memory(room.cost, num_rows=rows, tokens_per_row=tokens)
        return needed.total <= room.usable_at(rows, tokens)

    rows = _largest(num_rows, lambda number: fits(number, tokens_per_row))
    context = _largest(
        tokens_per_row - slack, lambda length: fits(num_rows, row_tokens(length, slack))
    )
    fixes = [f"scheduler.max_running_requests={rows}"] if rows else []
    fixes += [f"model.context_length={context}"] if context >= _SMALLEST_CONTEXT else []
    fix = "set " + ", or ".join(fixes) if fixes else "take a machine with more memory"
    return [
        Problem(
            rule=RuleId.REQUESTS_DO_NOT_FIT,
            key="scheduler.max_running_requests",
            value=num_rows,
            expected=f"a plan of at most {gib(usable)}, the device's usable memory "
            f"({_there_is(room)}); {num_rows} rows of {tokens_per_row} tokens make "
            f"{itemized(allocation)}",
            fix=fix,
        )
    ]


def pool_problems(
    config: RunConfig, room: Room, *, context_length: int, max_kv_tokens: int
) -> list[Problem]:
    """For SGLang: more GPUs, a smaller pool, or a shorter context if one request overfills it."""
    cost, usable = room.cost, room.usable
    if _lacks_gpus(config, room):
        return [_too_few_gpus(config, room, context_length)]
    if usable is None:
        return []
    if cost.weights >= usable:
        return [_weights_problem(config, room, usable, context_length=context_length)]
    fitting = pool_tokens(cost, usable)
    beside = (
        f"at most {fitting} tokens, which fit beside weights of {gib(cost.weights)} in the "
        f"{gib(usable)} usable of each GPU ({_there_is(room)})"
    )
    if context_length > fitting:
        return [
            Problem(
                rule=RuleId.CONTEXT_DOES_NOT_FIT,
                key="model.context_length",
                value=context_length,
                expected=beside,
                fix=f"set model.context_length={fitting}",
            )
        ]
    if max_kv_tokens > fitting:
        return [
            Problem(
                rule=RuleId.KV_POOL_DOES_NOT_FIT,
                key="scheduler.max_kv_tokens",
                value=max_kv_tokens,
                expected=beside,
                fix=f"set scheduler.max_kv_tokens={fitting}",
            )
        ]
    return []


def pool_tokens(cost: Costs, usable: int) -> int:
    """Tokens whose keys and values fit beside the weights."""
    return max(0, (usable - cost.weights) // cost.both_kv_per_token)


def itemized(allocation: Allocation) -> str:
    """The sum and its parts, for people."""
    parts = [
        f"{name.replace('_', ' ')} {gib(size)}" for name, size in allocation.parts.items() if size
    ]
    return f"{gib(allocation.total)} ({', '.join(parts)})"


def gib(num_bytes: int) -> str:
    """Bytes for people, in binary units."""
    return f"{num_bytes / 2**30:,.2f} GiB"


def _weights_problem(config: RunConfig, room: Room, usable: int, *, context_length: int) -> Problem:
    cost = room.cost
    more = "take a device with more memory"
    return Problem(
        rule=RuleId.WEIGHTS_DO_NOT_FIT,
        key="model.path",
        value=config.model.path,
        expected=f"weights of less than {gib(usable)}, the device's usable memory "
        f"({_there_is(room)}); target {gib(cost.target_weights)} and draft "
        f"{gib(cost.draft_weights)} leave no room: each device would need "
        f"{gib(_needs(room, cost, context_length))}",
        fix=", or ".join((*_smaller(config, room, context_length), more)),
    )


def _lacks_gpus(config: RunConfig, room: Room) -> bool:
    on_cpu = isinstance(config.engine, SglangEngineConfig) and config.engine.device == "cpu"
    return not on_cpu and room.num_visible < gpus_per_node(config)


def _too_few_gpus(config: RunConfig, room: Room, context_length: int) -> Problem:
    """Fewer GPUs than the run spreads over; less parallelism is advised if those hold it."""
    visible, needed = room.num_visible, gpus_per_node(config)
    expected = f"{needed} visible GPUs on this machine for engine=sglang, found {visible}"
    fix = "run on such a machine, or check against its recorded facts with --facts FILE"
    if room.usable is not None and room.device_bytes and config.parallel.num_nodes == 1:
        fewer = 1 << (visible.bit_length() - 1)
        if _holds(room, room.usable, fewer, context_length):
            fix = f"set parallel.tensor_parallel={fewer}, or {fix}"
        else:
            needs = _needs(room, room.cost_at(fewer), context_length)
            expected += (
                f"; spread over {fewer}, each would need {gib(needs)} and has "
                f"{gib(room.device_bytes)}"
            )
    return Problem(
        rule=RuleId.TOO_FEW_GPUS,
        key="parallel.tensor_parallel",
        value=config.parallel.tensor_parallel,
        expected=expected,
        fix=fix,
    )


def _largest(most: int, fits: Callable[[int], bool]) -> int:
    """The largest number from 1 to `most` that fits, if all smaller ones do; 0 if none does."""
    return bisect_left(range(1, most + 1), True, key=lambda number: not fits(number))


def _smaller(config: RunConfig, room: Room, context_length: int) -> Iterator[str]:
    """What makes the weights of one device fewer."""
    if config.engine.kind != "sglang":
        if config.quantization.kind == "none":
            yield "set quantization=int8 or quantization=int4"
        return
    yield from _larger_share(config, room, context_length)
    number = _fewest_gpus(room, context_length)
    if number is None:
        return
    if number <= room.num_visible * config.parallel.num_nodes:
        yield f"set parallel.tensor_parallel={number}, the fewest GPUs that hold it"
    else:
        yield f"run on {number} such GPUs, the fewest that hold it"


def _larger_share(config: RunConfig, room: Room, context_length: int) -> Iterator[str]:
    """A share of the device that holds it, if graphs, workspace and runtime leave so much."""
    if not room.device_bytes or _lacks_gpus(config, room):
        return
    needs = _needs(room, room.cost, context_length)
    percent = -(-100 * (needs - room.reserved) // room.device_bytes)
    if needs <= room.device_bytes and percent < 100:
        yield f"set engine.memory_fraction={percent / 100:g}"


def _fewest_gpus(room: Room, context_length: int) -> int | None:
    usable = room.usable or 0
    counts = [1 << power for power in range(_MOST_GPUS.bit_length())]
    fitting = [n for n in counts if _holds(room, usable, n, context_length)]
    return next((n for n in fitting if room.num_heads % n == 0), None)


def _holds(room: Room, usable: int, num_gpus: int, context_length: int) -> bool:
    """Whether each of so many GPUs holds its weights and one request of full length."""
    cost = room.cost_at(num_gpus)
    return cost.weights + context_length * cost.both_kv_per_token <= usable


def _needs(room: Room, cost: Costs, context_length: int) -> int:
    """All that one device must have for one request of full length."""
    return cost.weights + context_length * cost.both_kv_per_token + room.reserved


def _there_is(room: Room) -> str:
    return (
        f"{room.device} with {gib(room.device_bytes or 0)}, of which graphs, workspace and runtime "
        f"take {gib(room.reserved)}"
    )
