from dataclasses import replace

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from specserve.torch_engine.attention import PackedStep, Step, chain_step, make_attention, pack
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.rope import Rope, frequencies, rotate_, rotations

CPU = torch.device("cpu")
HEAD_DIM, ROW_TOKENS = 8, 80
FREQUENCY = frequencies(Rope(theta=10000.0, scaling=None), HEAD_DIM, CPU)


def make_cache(num_kv_heads: int, dtype: torch.dtype = torch.float32) -> KVCache:
    """Two layers of random old content: whatever is not hidden is noticed."""
    cache = KVCache(
        num_layers=2,
        num_rows=4,
        row_tokens=ROW_TOKENS,
        num_kv_heads=num_kv_heads,
        head_dim=HEAD_DIM,
        dtype=dtype,
        device=CPU,
    )
    generator = torch.Generator().manual_seed(5)
    for layer in cache.layers:
        layer.copy_(torch.randn(layer.shape, generator=generator))
    return cache


def random_heads(step: Step, num_heads: int, num_kv_heads: int) -> torch.Tensor:
    shape = (step.num_rows, step.num_queries, num_heads + 2 * num_kv_heads, HEAD_DIM)
    return torch.randn(shape, generator=torch.Generator().manual_seed(6))


def attend(step: Step, cache: KVCache, layer: int, heads: torch.Tensor) -> torch.Tensor:
    """With four query heads."""
    return make_attention(step, cache, FREQUENCY, 4)(layer, heads.flatten(2).clone())


def reference(step: Step, cache: KVCache, heads: torch.Tensor, num_heads: int) -> torch.Tensor:
    """Query by query and head by head, in float64, on a cache that `attend` has written to."""
    queries = heads[:, :, :num_heads].clone()
    rotate_(queries, rotations(step.positions, FREQUENCY))
    layer = cache.layers[1].double()
    out = torch.zeros(*queries.shape, dtype=torch.float64)
    for row in range(step.num_rows):
        for query in range(step.num_queries):
            for head in range(num_heads):
                kv_head = head // (num_heads // cache.num_kv_heads)
                keys = layer[0, step.first_row + row, kv_head, : step.kv_tokens]
                values = layer[1, step.first_row + row, kv_head, : step.kv_tokens]
                scores = keys @ queries[row, query, head].double() / HEAD_DIM**0.5
                if step.mask is not None:
                    scores[~step.mask[row, query]] = -torch.inf
                out[row, query, head] = scores.softmax(0) @ values
    return out.flatten(2)


@pytest.mark.parametrize("num_queries", [1, 4, 33], ids=lambda n: f"Q={n}")
@pytest.mark.parametrize("num_kv_heads", [1, 2, 4])
@pytest.mark.parametrize("num_rows", [1, 3])
def test_equals_attention_computed_query_by_query(
    num_queries: int, num_kv_heads: int, num_rows: int
) -> None:
    """33 queries take the fused kernel, fewer the matrix products."""
    cache = make_cache(num_kv_heads)
    lengths = torch.tensor([7, 0, 20])[:num_rows]
    step = chain_step(
        lengths,
        first_row=1,
        num_queries=num_queries,
        row_tokens=ROW_TOKENS,
        kv_tokens=20 + num_queries,
    )
    heads = random_heads(step, 4, num_kv_heads)

    mixed = attend(step, cache, 1, heads)

    torch.testing.assert_close(
        reference(step, cache, heads, 4).float(), mixed, rtol=1e-4, atol=1e-5
    )


def test_without_a_mask_every_query_sees_all_tokens_looked_at() -> None:
    cache = make_cache(2)
    step = chain_step(
        torch.tensor([9, 9]),
        first_row=0,
        num_queries=1,
        row_tokens=ROW_TOKENS,
        kv_tokens=10,
        see_all=True,
    )
    heads = random_heads(step, 4, 2)

    mixed = attend(step, cache, 1, heads)

    assert step.mask is None
    torch.testing.assert_close(
        reference(step, cache, heads, 4).float(), mixed, rtol=1e-4, atol=1e-5
    )


@given(seed=st.integers(0, 2**32), num_queries=st.sampled_from([2, 5, 40]))
@settings(max_examples=20, deadline=None)
def test_any_mask_is_honoured(seed: int, num_queries: int) -> None:
    """Trees have masks of any form; each query sees itself at least."""
    cache = make_cache(2)
    step = chain_step(
        torch.tensor([3, 8]),
        first_row=2,
        num_queries=num_queries,
        row_tokens=ROW_TOKENS,
        kv_tokens=8 + num_queries,
    )
    assert step.mask is not None
    chosen = torch.rand(step.mask.shape, generator=torch.Generator().manual_seed(seed)) < 0.5
    own = torch.arange(step.kv_tokens) == step.positions[..., None]
    step = replace(step, mask=chosen | own)
    heads = random_heads(step, 4, 2)

    mixed = attend(step, cache, 1, heads)

    torch.testing.assert_close(
        reference(step, cache, heads, 4).float(), mixed, rtol=1e-4, atol=1e-5
    )


@pytest.mark.parametrize("num_queries", [3, 40])
def test_a_padding_query_that_sees_nothing_stays_finite(num_queries: int) -> None:
    """Its output is thrown away, but NaN would reach the others through the scratch slot."""
    step = chain_step(
        torch.tensor([0]), first_row=0, num_queries=num_queries, row_tokens=ROW_TOKENS, kv_tokens=60
    )
    step = replace(step, mask=torch.zeros(1, num_queries, 60, dtype=torch.bool))

    mixed = attend(step, make_cache(2), 0, random_heads(step, 4, 2))

    assert mixed.isfinite().all()


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("num_queries", [1, 4])
def test_half_precision_is_close_to_float(dtype: torch.dtype, num_queries: int) -> None:
    step = chain_step(
        torch.tensor([7, 20]),
        first_row=0,
        num_queries=num_queries,
        row_tokens=ROW_TOKENS,
        kv_tokens=20 + num_queries,
    )
    heads = random_heads(step, 4, 2)
    expected = attend(step, make_cache(2), 0, heads)

    mixed = attend(step, make_cache(2, dtype), 0, heads.to(dtype))

    assert dtype is mixed.dtype
    torch.testing.assert_close(expected, mixed.float(), rtol=0.05, atol=0.03)


def test_chain_step_counts_on_from_the_cached_tokens() -> None:
    step = chain_step(torch.tensor([2, 0]), first_row=1, num_queries=2, row_tokens=10, kv_tokens=4)

    assert (1, 2, 2, 4) == (step.first_row, step.num_rows, step.num_queries, step.kv_tokens)
    assert [[2, 3], [0, 1]] == step.positions.tolist()
    assert [12, 13, 20, 21] == step.slots.tolist()
    assert step.mask is not None
    assert [
        [[True, True, True, False], [True, True, True, True]],
        [[True, False, False, False], [True, True, False, False]],
    ] == step.mask.tolist()


def test_chain_step_takes_positions_that_differ_from_the_places() -> None:
    """A draft that skipped tokens stores its entries one behind the other all the same."""
    step = chain_step(
        torch.tensor([2]),
        first_row=0,
        num_queries=1,
        row_tokens=10,
        kv_tokens=3,
        positions=torch.tensor([[7]]),
    )

    assert [[7]] == step.positions.tolist()
    assert [2] == step.slots.tolist()


def test_packed_spans_of_several_rows_are_attended_as_each_alone() -> None:
    lengths, sizes = (0, 7, 3), (40, 1, 5)
    parts = [
        chain_step(
            torch.tensor([length]),
            first_row=row,
            num_queries=size,
            row_tokens=ROW_TOKENS,
            kv_tokens=length + size,
        )
        for row, (length, size) in enumerate(zip(lengths, sizes, strict=True))
    ]
    heads = [random_heads(part, 4, 2) for part in parts]
    alone, together = make_cache(2), make_cache(2)

    expected = [attend(part, alone, 1, own) for part, own in zip(parts, heads, strict=True)]
    packed = pack(parts)
    found = make_attention(packed, together, FREQUENCY, 4)(1, torch.cat(heads, 1).flatten(2))

    assert isinstance(packed, PackedStep)
    torch.testing.assert_close(found, torch.cat(expected, 1))
    torch.testing.assert_close(together.layers[1], alone.layers[1])


def test_one_part_is_packed_as_itself() -> None:
    part = chain_step(
        torch.tensor([2]), first_row=0, num_queries=3, row_tokens=ROW_TOKENS, kv_tokens=5
    )

    assert pack([part]) is part
