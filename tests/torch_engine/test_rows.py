import torch

from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.features import FeatureStore
from specserve.torch_engine.rows import Rows

CPU = torch.device("cpu")


def cache(num_layers: int) -> KVCache:
    return KVCache(
        num_layers=num_layers,
        num_rows=3,
        row_tokens=8,
        num_kv_heads=2,
        head_dim=4,
        dtype=torch.float32,
        device=CPU,
    )


def filled() -> tuple[Rows, KVCache, KVCache, FeatureStore]:
    """Three rows of four tokens, whose contents all tell the row."""
    target, draft = cache(2), cache(1)
    store = FeatureStore(num_rows=3, ring_tokens=4, width=2, dtype=torch.float32, device=CPU)
    rows = Rows(target, draft, store)
    for row in range(3):
        rows.start(row, torch.full((5,), row))
        rows.lengths[row], rows.covered[row], rows.draft_lengths[row] = 4, 3 + row, 2 + row
        for one in (target, draft):
            for layer in one.layers:
                layer[:, row, :, :5] = row
        store.write(row, torch.arange(4)[None], torch.full((1, 4, 2), float(row)))
    return rows, target, draft, store


def contents(parts: tuple[Rows, KVCache, KVCache, FeatureStore]) -> list[set[float]]:
    """Each row's marks, from everything that a row has."""
    rows, target, draft, store = parts
    found = []
    for row in range(3):
        marks = {float(x) for x in rows.tokens[row, :5]}
        marks |= {float(rows.covered[row]) - 3, float(rows.draft_lengths[row]) - 2}
        for one in (target, draft):
            for layer in one.layers:
                marks |= {float(x) for x in layer[:, row, :, :4].flatten()}
        marks |= {float(x) for x in store.read(row, torch.arange(4)[None]).flatten()}
        found.append(marks)
    return found


def test_a_row_moves_with_all_it_has() -> None:
    parts = filled()
    parts[0].move(2, 0, 4)

    assert [{2.0}, {1.0}, {2.0}] == contents(parts)


def test_two_rows_change_places_with_all_they_have() -> None:
    parts = filled()
    parts[0].exchange(0, 2, 4)

    assert [{2.0}, {1.0}, {0.0}] == contents(parts)


def test_appending_counts_only_what_was_kept() -> None:
    """The next token stands behind the last one in the cache."""
    rows = Rows(cache(1), None, None)
    rows.start(1, torch.tensor([7, 8]))
    rows.lengths[1] = 1
    rows.append(1, torch.tensor([[20, 21, 22]]), torch.tensor([2]))
    rows.append(1, torch.tensor([[30]]), 1)

    assert 4 == int(rows.lengths[1])
    assert [7, 8, 20, 21, 30] == rows.tokens[1, :5].tolist()
