"""The matrices that a decoder of given dimensions consists of, counted part by part."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from specserve.checkpoint.architecture import Dimensions, Mla, Moe

Part = Literal[
    "embedding",
    "lm_head",
    "attention",
    "dense_mlp",
    "routed_experts",
    "shared_experts",
    "routers",
    "norms",
]
# How tensor parallelism treats a matrix: shared out, one copy on each GPU, or shared out by heads
# of which there may be fewer than GPUs.
Spread = Literal["shared_out", "copied", "kv_heads"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Matrices:
    """`count` matrices of [num_rows, num_columns]; a norm is a matrix of one column."""

    part: Part
    count: int
    num_rows: int
    num_columns: int
    spread: Spread = "shared_out"

    @property
    def numel(self) -> int:
        """Numbers in all of them."""
        return self.count * self.num_rows * self.num_columns


def matrices(size: Dimensions) -> Iterator[Matrices]:
    """Every matrix of the decoder; biases and norms of single heads are left out."""
    moe = size.moe
    num_dense = size.num_layers if moe is None else min(moe.num_dense_layers, size.num_layers)
    yield _one("embedding", size.vocab_size, size.hidden_size)
    if not size.tie_word_embeddings:
        yield _one("lm_head", size.vocab_size, size.hidden_size)
    yield from _attention(size) if size.mla is None else _latent_attention(size, size.mla)
    yield from _mlps("dense_mlp", num_dense, size.hidden_size, size.intermediate_size)
    if moe is not None:
        yield from _experts(moe, size.num_layers - num_dense, size.hidden_size)
    # Before attention and before the MLP of each layer, and after the last layer.
    yield _norms(2 * size.num_layers + 1, size.hidden_size)


def parameters(size: Dimensions) -> dict[Part, int]:
    """Numbers by part, in the order of the checkpoint; parts that are not there have no entry."""
    return _sums(matrices(size))


def _sums(found: Iterable[Matrices]) -> dict[Part, int]:
    sums: dict[Part, int] = {}
    for one in found:
        sums[one.part] = sums.get(one.part, 0) + one.numel
    return {part: number for part, number in sums.items() if number}


def _attention(size: Dimensions) -> Iterator[Matrices]:
    layers, hidden = size.num_layers, size.hidden_size
    q_width, kv_width = size.num_heads * size.head_dim, size.num_kv_heads * size.head_dim
    yield _layers(layers, q_width, hidden)
    yield _layers(2 * layers, kv_width, hidden, "kv_heads")
    yield _layers(layers, hidden, q_width)


def _latent_attention(size: Dimensions, mla: Mla) -> Iterator[Matrices]:
    """What compresses is copied to each GPU; what expands has the heads of that GPU only."""
    layers, hidden, heads = size.num_layers, size.hidden_size, size.num_heads
    q_width = heads * (mla.qk_nope_head_dim + mla.qk_rope_head_dim)
    if mla.q_lora_rank is None:
        yield _layers(layers, q_width, hidden)
    else:
        yield _layers(layers, mla.q_lora_rank, hidden, "copied")
        yield _norms(layers, mla.q_lora_rank)
        yield _layers(layers, q_width, mla.q_lora_rank)
    yield _layers(layers, mla.kv_lora_rank + mla.qk_rope_head_dim, hidden, "copied")
    yield _norms(layers, mla.kv_lora_rank)
    yield _layers(layers, heads * (mla.qk_nope_head_dim + mla.v_head_dim), mla.kv_lora_rank)
    yield _layers(layers, hidden, heads * mla.v_head_dim)


def _experts(moe: Moe, num_layers: int, hidden: int) -> Iterator[Matrices]:
    inner = moe.intermediate_size
    yield from _mlps("routed_experts", num_layers * moe.num_experts, hidden, inner)
    yield from _mlps("shared_experts", num_layers * moe.num_shared_experts, hidden, inner)
    yield Matrices(
        part="routers",
        count=num_layers,
        num_rows=moe.num_experts,
        num_columns=hidden,
        spread="copied",
    )


def _mlps(part: Part, count: int, hidden: int, inner: int) -> Iterator[Matrices]:
    """SwiGLU: gate and up, then down."""
    yield Matrices(part=part, count=2 * count, num_rows=inner, num_columns=hidden)
    yield Matrices(part=part, count=count, num_rows=hidden, num_columns=inner)


def _layers(count: int, num_rows: int, num_columns: int, spread: Spread = "shared_out") -> Matrices:
    return Matrices(
        part="attention", count=count, num_rows=num_rows, num_columns=num_columns, spread=spread
    )


def _one(part: Part, num_rows: int, num_columns: int) -> Matrices:
    return Matrices(part=part, count=1, num_rows=num_rows, num_columns=num_columns)


def _norms(count: int, width: int) -> Matrices:
    return Matrices(part="norms", count=count, num_rows=width, num_columns=1, spread="copied")
