import pytest
import torch

from specserve.torch_engine.cache import KVCache

ROW_TOKENS = 6
CPU = torch.device("cpu")


def make_cache(num_layers: int = 2, num_rows: int = 3) -> KVCache:
    return KVCache(
        num_layers=num_layers,
        num_rows=num_rows,
        row_tokens=ROW_TOKENS,
        num_kv_heads=2,
        head_dim=4,
        dtype=torch.float32,
        device=CPU,
    )


def filled_cache() -> KVCache:
    """A cache in which every vector is different."""
    cache = make_cache()
    for number, layer in enumerate(cache.layers):
        layer.copy_(torch.arange(layer.numel()).view(layer.shape) + 1000 * number)
    return cache


def slot_of(cache: KVCache, layer: int, slot: int) -> torch.Tensor:
    """Keys and values of one slot, [2, Hkv, D]."""
    row, token = divmod(slot, ROW_TOKENS)
    return cache.layers[layer][:, row, :, token].clone()


def test_counts_its_bytes() -> None:
    assert 2 * 2 * 3 * 2 * 6 * 4 * 4 == make_cache().num_bytes


def test_starts_finite_because_a_hidden_nan_would_still_spoil_the_sum() -> None:
    assert all((layer == 0).all() for layer in make_cache().layers)


def test_what_is_written_to_a_slot_is_read_at_its_row_and_token() -> None:
    cache = make_cache()
    slots = torch.tensor(
        [1 * ROW_TOKENS + 4, 1 * ROW_TOKENS + 2, 2 * ROW_TOKENS, 2 * ROW_TOKENS + 1]
    )
    keys_values = torch.randn(2, 2, 4, 4, generator=torch.Generator().manual_seed(0))
    index = cache.vector_index(slots, first_row=1, num_rows=2)
    cache.vectors[1].index_copy_(0, index, keys_values.view(-1, 4))

    keys, values = cache.read(first_row=1, num_rows=2, num_tokens=5)

    for query, (row, token) in enumerate([(0, 4), (0, 2), (1, 0), (1, 1)]):
        new = keys_values.flatten(0, 1)[query]
        assert torch.equal(new[:2], keys[1][row, :, token])
        assert torch.equal(new[2:], values[1][row, :, token])
    assert (cache.layers[0] == 0).all()
    assert 4 * 2 * 2 == int((cache.layers[1] != 0).any(-1).sum())


def test_reads_are_views() -> None:
    cache = make_cache()
    keys, _ = cache.read(first_row=0, num_rows=1, num_tokens=2)
    cache.layers[0].fill_(7)

    assert (keys[0] == 7).all()


def test_move_row_copies_the_first_tokens_of_all_layers_and_no_more() -> None:
    cache, before = filled_cache(), filled_cache()

    cache.move_row(2, 0, 4)

    for layer in range(2):
        for token in range(ROW_TOKENS):
            source = 2 * ROW_TOKENS + token if token < 4 else token
            assert torch.equal(slot_of(before, layer, source), slot_of(cache, layer, token))
        assert torch.equal(before.layers[layer][:, 1:], cache.layers[layer][:, 1:])


@pytest.mark.parametrize(
    ("source", "destination"),
    [([3, 4], [2, 3]), ([2, 3], [3, 2]), ([8, 14], [6, 12]), ([5], [5])],
    ids=["overlapping", "swapped", "two rows", "in place"],
)
def test_move_slots_reads_everything_before_it_writes(
    source: list[int], destination: list[int]
) -> None:
    cache, before = filled_cache(), filled_cache()

    cache.move_slots(torch.tensor(source), torch.tensor(destination))

    origin = {slot: slot for slot in range(3 * ROW_TOKENS)} | dict(
        zip(destination, source, strict=True)
    )
    for layer in range(2):
        for slot, source_slot in origin.items():
            assert torch.equal(slot_of(before, layer, source_slot), slot_of(cache, layer, slot))
