"""The memory plan as a table for people: what, how much, and how it is known."""

from collections.abc import Iterator

from specserve.plan.memory_plan import MemoryPart, MemoryPlan
from specserve.plan.values import Plan

_NAMES: dict[MemoryPart, str] = {
    "target_weights": "target weights",
    "draft_weights": "draft weights",
    "kv": "KV, target",
    "draft_kv": "KV, draft",
    "features": "features",
    "graphs_plain": "CUDA graphs, plain",
    "graphs_verify": "CUDA graphs, verify",
    "graphs_draft": "CUDA graphs, draft",
    "workspace": "workspace",
    "runtime": "runtime",
    "mapped_files": "mapped files",
}


def memory_table(plan: Plan) -> list[str]:
    """Lines without indentation: the device, a line for each row, the sum, and what is left."""
    return list(memory_lines(plan.memory))


def memory_lines(memory: MemoryPlan) -> Iterator[str]:
    """As `memory_table`, of the memory plan alone."""
    yield f"memory of {_devices(memory)}"
    for row in memory.rows:
        yield _line(_NAMES[row.what], row.num_bytes, row.known, row.basis)
    without = " but mapped files" if memory.bytes_of("mapped_files") else ""
    yield _line("needed", memory.needed_bytes, "", f"all rows{without}")
    if memory.device_bytes is not None and memory.usable_bytes is not None:
        usable = f"allocations may take {_mib(memory.usable_bytes)} and take "
        usable += _mib(memory.total_bytes)
        left = memory.device_bytes - memory.needed_bytes
        yield _line("left", left, "", usable)
    yield from _tokens(memory)


def _tokens(memory: MemoryPlan) -> Iterator[str]:
    per_token = memory.kv_bytes_per_token + memory.draft_kv_bytes_per_token
    if not per_token:
        return
    own = f"{memory.kv_bytes_per_token:,} B target"
    own += f" + {memory.draft_kv_bytes_per_token:,} B draft" * bool(memory.draft_kv_bytes_per_token)
    fitting = "" if memory.fitting_tokens is None else f"; {memory.fitting_tokens:,} tokens fit"
    yield f"KV per token {per_token:,} B ({own}){fitting} beside the weights"


def _devices(memory: MemoryPlan) -> str:
    each = "" if memory.num_devices == 1 else f"each of {memory.num_devices} x "
    if memory.device_bytes is None:
        return f"{each}{memory.device}"
    return f"{each}{memory.device}, {_mib(memory.device_bytes)}"


def _line(name: str, num_bytes: int, known: str, basis: str) -> str:
    return f"{name:<20}{_mib(num_bytes):>15}  {known:<9}  {basis}"


def _mib(num_bytes: int) -> str:
    return f"{num_bytes / 2**20:,.1f} MiB"
