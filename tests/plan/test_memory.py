from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.plan.memory import (
    Costs,
    largest_context,
    largest_num_rows,
    pool_memory,
    rows_memory,
)
from specserve.plan.rows import row_tokens
from specserve.plan.values import MemoryPlan

COSTS = Costs(
    target_weights=1000,
    draft_weights=100,
    kv_per_token=16,
    draft_kv_per_token=2,
    features_per_token=12,
    ring_tokens=5,
)


def test_rows_hold_keys_values_and_a_ring_of_features() -> None:
    assert MemoryPlan(
        target_weight_bytes=1000,
        draft_weight_bytes=100,
        kv_bytes=3 * 64 * 16,
        draft_kv_bytes=3 * 64 * 2,
        feature_bytes=3 * 5 * 12,
    ) == rows_memory(COSTS, num_rows=3, tokens_per_row=64)


def test_a_refill_keeps_the_features_of_the_whole_row() -> None:
    refill = replace(COSTS, ring_tokens=None)

    assert 3 * 64 * 12 == rows_memory(refill, num_rows=3, tokens_per_row=64).feature_bytes


def test_a_pool_holds_keys_and_values_only() -> None:
    memory = pool_memory(COSTS, num_tokens=50)

    assert (800, 100, 0) == (memory.kv_bytes, memory.draft_kv_bytes, memory.feature_bytes)


def test_the_total_is_the_sum_of_all_parts() -> None:
    memory = rows_memory(COSTS, num_rows=3, tokens_per_row=64)

    assert sum(memory.model_dump().values()) == memory.total_bytes


costs = st.builds(
    Costs,
    target_weights=st.integers(0, 10**6),
    draft_weights=st.integers(0, 10**5),
    kv_per_token=st.integers(1, 1000),
    draft_kv_per_token=st.integers(0, 100),
    features_per_token=st.integers(0, 100),
    ring_tokens=st.none() | st.integers(1, 20),
)


@given(cost=costs, usable=st.integers(0, 10**8), tokens=st.integers(8, 5000))
def test_the_largest_number_of_rows_fits_and_one_more_does_not(
    cost: Costs, usable: int, tokens: int
) -> None:
    rows = largest_num_rows(cost, usable, tokens_per_row=tokens)

    def total(num_rows: int) -> int:
        return rows_memory(cost, num_rows=num_rows, tokens_per_row=tokens).total_bytes

    assert rows == 0 or total(rows) <= usable
    assert total(rows + 1) > usable


@given(
    cost=costs,
    usable=st.integers(0, 10**8),
    num_rows=st.integers(1, 64),
    slack=st.integers(1, 80),
)
def test_the_largest_context_fits_and_one_more_token_does_not(
    cost: Costs, usable: int, num_rows: int, slack: int
) -> None:
    context = largest_context(cost, usable, num_rows=num_rows, slack=slack)

    def total(length: int) -> int:
        tokens = row_tokens(length, slack)
        return rows_memory(cost, num_rows=num_rows, tokens_per_row=tokens).total_bytes

    assert context == 0 or total(context) <= usable
    assert total(context + 1) > usable


@pytest.mark.parametrize("usable", [0, 1099, 1100])
def test_where_the_weights_fill_everything_nothing_fits(usable: int) -> None:
    assert 0 == largest_num_rows(COSTS, usable, tokens_per_row=64)
    assert 0 == largest_context(COSTS, usable, num_rows=1, slack=9)
