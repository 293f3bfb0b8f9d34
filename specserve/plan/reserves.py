"""What a device's memory is needed for beside what the build allocates: graphs, workspace, runtime.

Estimates, each with its basis in words: they keep an allocation from filling the device to the
brim, and are checked against a real build by scripts/check_memory.py.
"""

from collections.abc import Iterator

from specserve.checkpoint.architecture import Dimensions
from specserve.checkpoint.dtype import DTYPE_BYTES
from specserve.config.run import RunConfig
from specserve.facts import Machine
from specserve.plan.cuda_graphs import verify_limit
from specserve.plan.execution import Device, gpus_per_node
from specserve.plan.graph_memory import StateGraphs, sglang_graphs, torch_graphs
from specserve.plan.memory_plan import MemoryPart, MemoryRow
from specserve.plan.values import SpeculationPlan, TargetPlan

_MIB = 1 << 20
# Resident before anything is loaded, and libraries that loading brings in.
_CPU_RUNTIME_BYTES = 400 * _MIB
# The CUDA context, and the kernels of torch and cuBLAS that are loaded as they are first used.
_CUDA_RUNTIME_BYTES = 640 * _MIB
_NCCL_BYTES = 1024 * _MIB
# torch gives each stream on which cuBLAS computes a workspace; Hopper and later a larger one.
_CUBLAS_BYTES = {"hopper": 32 * _MIB, "older": 8 * _MIB + (128 << 10)}
# Captures of engine=torch warm up on streams of torch's pool, which has so many.
_POOLED_STREAMS = 32
# For each logit of a sampled position: engine=torch also holds float32 and float64, twice each,
# SGLang float32 twice.
_SAMPLING_BYTES = {"torch": 4 + 4 + 8 + 8, "sglang": 4 + 4}


def reserve_rows(
    config: RunConfig,
    machine: Machine,
    size: Dimensions,
    target: TargetPlan,
    speculation: SpeculationPlan | None,
    *,
    device: Device,
    batch_sizes: tuple[int, ...],
    row_tokens: int,
) -> tuple[MemoryRow, ...]:
    """The rows of one device, in the order in which they are shown."""
    is_torch = config.engine.kind == "torch"
    graphs = (
        torch_graphs(target, speculation, batch_sizes, row_tokens)
        if is_torch
        else sglang_graphs(target, speculation, batch_sizes)
    )
    num_graphs = sum(one.num_graphs for one in graphs) if is_torch else 0
    libraries = library_bytes(config, machine, device, num_graphs)
    return (
        *(_graphs_row(one, is_torch=is_torch) for one in graphs),
        _workspace_row(config, size, target, speculation, libraries),
        _runtime_row(config, device),
    )


def library_bytes(config: RunConfig, machine: Machine, device: Device, num_graphs: int) -> int:
    """cuBLAS's workspaces: one for each stream and each thread that has computed with it.

    engine=torch computes on torch's own stream, on those on which graphs warm up, and under the
    overlap scheduler on a second thread.
    """
    if device == "cpu":
        return 0
    second_thread = config.engine.kind == "torch" and config.scheduler.kind == "overlap"
    return (1 + second_thread + min(num_graphs, _POOLED_STREAMS)) * _cublas_bytes(machine)


def _graphs_row(graphs: StateGraphs, *, is_torch: bool) -> MemoryRow:
    parts: dict[str, MemoryPart] = {
        "plain": "graphs_plain",
        "verify": "graphs_verify",
        "draft": "graphs_draft",
    }
    held = f"{graphs.tensor_bytes / _MIB:,.1f} MiB of inputs, masks and outputs and "
    return MemoryRow(
        what=parts[graphs.state],
        num_bytes=graphs.tensor_bytes + graphs.driver_bytes,
        known="estimated",
        basis=f"{graphs.num_graphs} graphs: {held if is_torch else ''}"
        f"{graphs.driver_bytes / _MIB:,.1f} MiB of the driver's, by the number of layers",
    )


def _workspace_row(
    config: RunConfig,
    size: Dimensions,
    target: TargetPlan,
    speculation: SpeculationPlan | None,
    libraries: int,
) -> MemoryRow:
    """Of the widest pass: a chunk of a prompt, or a round of all that the policy lets speculate."""
    dtype_bytes = DTYPE_BYTES[target.dtype]
    round_tokens = num_rows = config.scheduler.max_running_requests
    if speculation is not None:
        num_verified = verify_limit(config.policy, num_rows) * speculation.num_draft_tokens
        round_tokens = max(round_tokens, num_verified)
    tokens = max(round_tokens, config.scheduler.prefill_chunk_tokens)
    num_aux = len(speculation.draft.aux_layer_inputs) if speculation else 0
    # The residual, its norm and the sum; gate, up and their product; features, and their copy.
    width = 3 * size.hidden_size + 3 * size.intermediate_size + 2 * num_aux * size.hidden_size
    activations = tokens * width * dtype_bytes
    logits = round_tokens * size.vocab_size * (dtype_bytes + _SAMPLING_BYTES[config.engine.kind])
    return MemoryRow(
        what="workspace",
        num_bytes=max(activations, logits) + libraries,
        known="estimated",
        basis=f"{activations / _MIB:,.0f} MiB of activations for {tokens} tokens, or "
        f"{logits / _MIB:,.0f} MiB of logits for {round_tokens} sampled"
        + (f", and {libraries / _MIB:,.0f} MiB of cuBLAS" if libraries else ""),
    )


def _runtime_row(config: RunConfig, device: Device) -> MemoryRow:
    if device == "cpu":
        basis = "Python, torch and transformers, resident, as with torch 2.13 for CPUs"
        return _runtime(_CPU_RUNTIME_BYTES, basis)
    context = "the CUDA context and loaded kernels"
    if config.parallel.tensor_parallel > 1:
        return _runtime(_CUDA_RUNTIME_BYTES + _NCCL_BYTES, f"{context}, and NCCL's buffers")
    return _runtime(_CUDA_RUNTIME_BYTES, context)


def _runtime(num_bytes: int, basis: str) -> MemoryRow:
    return MemoryRow(what="runtime", num_bytes=num_bytes, known="estimated", basis=basis)


def _cublas_bytes(machine: Machine) -> int:
    majors = (gpu.compute_capability.partition(".")[0] for gpu in machine.gpus)
    is_new = all(not major.isdecimal() or int(major) >= 9 for major in majors)
    return _CUBLAS_BYTES["hopper" if is_new else "older"]


def reserved_bytes(rows: tuple[MemoryRow, ...]) -> int:
    """Their sum."""
    return sum(row.num_bytes for row in rows)


def devices(config: RunConfig, machine: Machine, device: Device) -> Iterator[tuple[str, int]]:
    """Name and bytes of each device that this machine gives to the run; processes share a host."""
    if device == "cpu":
        yield "host memory", machine.memory_bytes // gpus_per_node(config)
        return
    for gpu in machine.gpus[: gpus_per_node(config)]:
        yield gpu.name, gpu.memory_bytes
