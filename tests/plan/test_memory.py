from dataclasses import replace

from specserve.plan.memory import Allocation, Costs, pool_memory, rows_memory

COSTS = Costs(
    target_weights=1000,
    draft_weights=100,
    kv_per_token=16,
    draft_kv_per_token=2,
    features_per_token=12,
    ring_tokens=5,
)


def test_rows_hold_keys_values_and_a_ring_of_features() -> None:
    assert Allocation(
        target_weights=1000,
        draft_weights=100,
        kv=3 * 64 * 16,
        draft_kv=3 * 64 * 2,
        features=3 * 5 * 12,
    ) == rows_memory(COSTS, num_rows=3, tokens_per_row=64)


def test_a_refill_keeps_the_features_of_the_whole_row() -> None:
    refill = replace(COSTS, ring_tokens=None)

    assert 3 * 64 * 12 == rows_memory(refill, num_rows=3, tokens_per_row=64).features


def test_a_pool_holds_keys_and_values_only() -> None:
    memory = pool_memory(COSTS, num_tokens=50)

    assert (800, 100, 0) == (memory.kv, memory.draft_kv, memory.features)


def test_the_total_is_the_sum_of_all_parts() -> None:
    memory = rows_memory(COSTS, num_rows=3, tokens_per_row=64)

    assert 1000 + 100 + 3 * (64 * (16 + 2) + 5 * 12) == memory.total
