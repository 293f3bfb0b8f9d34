"""What CUDA graphs take, for each state that is captured: the passes of plain, verify and draft.

engine=torch captures a pass for each batch size, number of queries and span of slots. Each keeps
its inputs, its mask and its outputs, which are counted here by their shapes, and an executable of
the driver's, which is estimated. The engine's own sizes (torch_engine/graphs.py and passes.py)
can't be imported, because the plan works without torch; a test holds the two together.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import product
from typing import Literal

from specserve.checkpoint.dtype import DTYPE_BYTES, ActivationDtype
from specserve.plan.values import SpeculationPlan, TargetPlan

State = Literal["plain", "verify", "draft"]

_FEWEST_KV_TOKENS = 256
_INDEX_BYTES = 8
# torch's allocator hands out multiples of this.
_BLOCK_BYTES = 512
# A layer of engine=torch launches about so many kernels, and a driver keeps about so much for each
# kernel of a graph: what remains of reported growth beside what torch's allocator holds.
_LAYER_KERNELS = 20
_KERNEL_BYTES = 32 << 10
# SGLang: its logs show some 15 MiB for each captured batch size of a dense model of 32 layers.
_SGLANG_LAYER_BYTES = 512 << 10


@dataclass(frozen=True, slots=True, kw_only=True)
class StateGraphs:
    """The graphs of one state. `tensor_bytes` are held by torch, `driver_bytes` are not."""

    state: State
    num_graphs: int
    tensor_bytes: int
    driver_bytes: int


@dataclass(frozen=True, slots=True, kw_only=True)
class _Pass:
    """Widths of the floating inputs and outputs of one captured pass, in numbers a query."""

    state: State
    num_queries: Sequence[int]
    widths: Sequence[int]
    num_layers: int


def torch_graphs(
    target: TargetPlan,
    speculation: SpeculationPlan | None,
    batch_sizes: Sequence[int],
    row_tokens: int,
) -> tuple[StateGraphs, ...]:
    """What engine=torch captures; nothing for no batch sizes."""
    if not batch_sizes:
        return ()
    spans = captured_spans(row_tokens)
    return tuple(
        _state_graphs(one, batch_sizes, spans, target.dtype) for one in _passes(target, speculation)
    )


def sglang_graphs(
    target: TargetPlan, speculation: SpeculationPlan | None, batch_sizes: Sequence[int]
) -> tuple[StateGraphs, ...]:
    """What SGLang captures: each state once for each batch size, and verify for each depth."""
    layers = {"plain": (1, target.num_layers)}
    if speculation is not None:
        layers["verify"] = (len(speculation.depths), target.num_layers)
        layers["draft"] = (2 * len(speculation.depths), 1)  # the draft's steps, and its extension
    states: dict[State, tuple[int, int]] = {
        state: layers[state] for state in ("plain", "verify", "draft") if state in layers
    }
    return tuple(
        StateGraphs(
            state=state,
            num_graphs=times * len(batch_sizes),
            tensor_bytes=0,
            driver_bytes=times * len(batch_sizes) * num_layers * _SGLANG_LAYER_BYTES,
        )
        for state, (times, num_layers) in states.items()
        if batch_sizes
    )


def captured_spans(row_tokens: int) -> tuple[int, ...]:
    """The numbers of slots that are captured: 256, 512, … and the whole row."""
    spans = []
    span = _FEWEST_KV_TOKENS
    while span < row_tokens:
        spans.append(span)
        span *= 2
    return (*spans, row_tokens)


def verify_widths(speculation: SpeculationPlan) -> set[int]:
    """Queries of the verify passes: what a tree of each depth has at most."""
    topk = speculation.topk
    return {
        min(speculation.num_draft_tokens, 1 + topk + (depth - 1) * topk * topk)
        for depth in speculation.depths
    }


def draft_widths(speculation: SpeculationPlan) -> set[int]:
    """Queries of the draft's passes: 1 … num_steps + 1 entries to catch up with, and topk."""
    return {*range(1, speculation.num_steps + 2), speculation.topk}


def _passes(target: TargetPlan, speculation: SpeculationPlan | None) -> Iterator[_Pass]:
    hidden, layers = target.hidden_size, target.num_layers
    features = len(speculation.draft.aux_layer_inputs) * hidden if speculation else 0
    outputs = [hidden, features]
    yield _Pass(state="plain", num_queries=[1], widths=outputs, num_layers=layers)
    if speculation is None:
        return
    widths = sorted(verify_widths(speculation))
    yield _Pass(state="verify", num_queries=widths, widths=outputs, num_layers=layers)
    widths = sorted(draft_widths(speculation))
    # The fused features come in, the draft's own hidden state goes out.
    yield _Pass(state="draft", num_queries=widths, widths=[hidden, hidden], num_layers=1)


def _state_graphs(
    one: _Pass, batch_sizes: Iterable[int], spans: Sequence[int], dtype: ActivationDtype
) -> StateGraphs:
    sizes = list(product(batch_sizes, one.num_queries, spans))
    return StateGraphs(
        state=one.state,
        num_graphs=len(sizes),
        tensor_bytes=sum(_tensor_bytes(one, *size, DTYPE_BYTES[dtype]) for size in sizes),
        driver_bytes=len(sizes) * one.num_layers * _LAYER_KERNELS * _KERNEL_BYTES,
    )


def _tensor_bytes(
    one: _Pass, num_rows: int, num_queries: int, kv_tokens: int, dtype_bytes: int
) -> int:
    """Tokens, positions and slots; the row's scratch slots; the mask; floating in- and outputs."""
    queries = num_rows * num_queries
    tensors = [
        *[queries * _INDEX_BYTES] * 3,
        num_rows * _INDEX_BYTES,
        queries * kv_tokens,
        *(queries * width * dtype_bytes for width in one.widths),
    ]
    return sum(-(-size // _BLOCK_BYTES) * _BLOCK_BYTES for size in tensors)
