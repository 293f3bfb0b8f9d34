"""CUDA graphs: forward passes of fixed sizes, captured while building and replayed in rounds.

A pass fits a captured one of at least its rows and slots and exactly its queries: missing rows
write to their scratch slots, missing slots are masked out.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from specserve.torch_engine.attention import PackedStep, Step
from specserve.torch_engine.cache import KVCache

# The shortest span of slots that is captured; longer ones double up to a whole row.
_FEWEST_KV_TOKENS = 256

GraphPool = Any  # torch keeps the name of this type to itself
Forward = Callable[[tuple[Tensor, ...], Step | PackedStep], tuple[Tensor, ...]]


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class PassSize:
    """B rows, Q queries a row, L slots looked at."""

    num_rows: int
    num_queries: int
    kv_tokens: int


def spans(row_tokens: int) -> tuple[int, ...]:
    """The numbers of slots that are captured: 256, 512, … and the whole row."""
    found = []
    span = _FEWEST_KV_TOKENS
    while span < row_tokens:
        found.append(span)
        span *= 2
    return (*found, row_tokens)


def pass_sizes(
    batch_sizes: Iterable[int], num_queries: Iterable[int], row_tokens: int
) -> tuple[PassSize, ...]:
    """Every combination, largest first: the later captures then fit into the pool's memory."""
    return tuple(
        sorted(
            (
                PassSize(num_rows=rows, num_queries=queries, kv_tokens=span)
                for rows in set(batch_sizes)
                for queries in set(num_queries)
                for span in spans(row_tokens)
            ),
            reverse=True,
        )
    )


class StaticPass:
    """The tensors that a captured pass reads, at fixed addresses, padded to its size."""

    def __init__(self, size: PassSize, inputs: Sequence[Tensor], cache: KVCache) -> None:
        """`inputs` [1, 1, ...] show type and width of what the pass takes beside its Step."""
        device = cache.layers[0].device
        shape = (size.num_rows, size.num_queries)
        self.inputs = tuple(one.new_zeros((*shape, *one.shape[2:])) for one in inputs)
        last_slots = torch.arange(1, size.num_rows + 1, device=device) * cache.row_tokens - 1
        self._scratch = last_slots[:, None].expand(shape)
        self._slots = self._scratch.clone()
        self._positions = torch.zeros(shape, dtype=torch.int64, device=device)
        self._mask = torch.zeros((*shape, size.kv_tokens), dtype=torch.bool, device=device)
        self.step = Step(
            first_row=0,
            num_rows=size.num_rows,
            num_queries=size.num_queries,
            positions=self._positions,
            slots=self._slots.view(-1),
            kv_tokens=size.kv_tokens,
            mask=self._mask,
        )

    def fill(self, inputs: Sequence[Tensor], step: Step) -> None:
        """Take over a pass that is no larger."""
        rows, slots = step.num_rows, step.kv_tokens
        for own, given in zip(self.inputs, inputs, strict=True):
            own[:rows].copy_(given)
        self._positions[:rows].copy_(step.positions)
        self._slots[:rows].copy_(step.slots.view(rows, -1))
        self._slots[rows:].copy_(self._scratch[rows:])
        self._mask[:rows, :, slots:].fill_(False)
        if step.mask is None:
            self._mask[:rows, :, :slots].fill_(True)
        else:
            self._mask[:rows, :, :slots].copy_(step.mask)


class CapturedPass:
    """One forward pass as a CUDA graph."""

    def __init__(self, forward: Forward, static: StaticPass, pool: GraphPool) -> None:
        self._static = static
        side = torch.cuda.Stream()  # type: ignore[no-untyped-call]
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):  # kernels are chosen and loaded outside the capture
            for _ in range(2):
                forward(static.inputs, static.step)
        torch.cuda.current_stream().wait_stream(side)
        self._graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self._graph, pool=pool):
            self._outputs = forward(static.inputs, static.step)

    def replay(self, inputs: Sequence[Tensor], step: Step) -> tuple[Tensor, ...]:
        """The outputs of the rows of `step`, safe from the next replay."""
        self._static.fill(inputs, step)
        self._graph.replay()
        return tuple(output[: step.num_rows].clone() for output in self._outputs)


class GraphedPass:
    """A forward pass that replays a graph where one fits, and computes as it is elsewhere."""

    def __init__(self, forward: Forward, captured: Mapping[PassSize, CapturedPass]) -> None:
        self._forward = forward
        self._captured = captured
        self.sizes = tuple(sorted(captured))

    def joined(self, other: "GraphedPass") -> "GraphedPass":
        """The same forward pass with the graphs of both."""
        return GraphedPass(self._forward, {**self._captured, **other._captured})

    def __call__(self, inputs: tuple[Tensor, ...], step: Step | PackedStep) -> tuple[Tensor, ...]:
        """Outputs [B, Q, ...] of inputs [B, Q, ...]."""
        if isinstance(step, PackedStep):
            return self._forward(inputs, step)
        size = fitting_size(self.sizes, step)
        if size is None:
            return self._forward(inputs, step)
        return self._captured[size].replay(inputs, step)


def fitting_size(sizes: Sequence[PassSize], step: Step) -> PassSize | None:
    """The smallest of the ascending `sizes` that holds the step."""
    if step.first_row != 0:
        return None
    for size in sizes:
        if (
            size.num_queries == step.num_queries
            and size.num_rows >= step.num_rows
            and size.kv_tokens >= step.kv_tokens
        ):
            return size
    return None


def capture(
    forward: Forward, inputs: Sequence[Tensor], cache: KVCache, sizes: Sequence[PassSize]
) -> GraphedPass:
    """Capture every size, all in one memory pool."""
    pool = torch.cuda.graph_pool_handle()
    captured = {
        size: CapturedPass(forward, StaticPass(size, inputs, cache), pool) for size in sizes
    }
    torch.cuda.synchronize()
    return GraphedPass(forward, captured)
