import torch

from specserve.torch_engine.features import FeatureStore


def store() -> FeatureStore:
    return FeatureStore(
        num_rows=3,
        ring_tokens=4,
        width=2,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )


def features(*positions: int) -> torch.Tensor:
    """Features that tell their position."""
    return torch.tensor([[[float(p), -float(p)] for p in positions]])


def test_the_newest_positions_can_be_read_back() -> None:
    one = store()
    for position in range(11):
        one.write(1, torch.tensor([[position]]), features(position))

    assert features(7, 8, 9, 10).equal(one.read(1, torch.tensor([[7, 8, 9, 10]])))


def test_rows_do_not_mix() -> None:
    one = store()
    one.write(0, torch.tensor([[1, 2], [5, 6], [1, 2]]), torch.cat([features(1, 2)] * 3))
    one.write(1, torch.tensor([[5, 6]]), features(5, 6))

    assert features(1, 2).equal(one.read(0, torch.tensor([[1, 2]])))
    assert features(1, 2).equal(one.read(2, torch.tensor([[1, 2]])))


def test_rings_move_and_change_places() -> None:
    one = store()
    one.write(0, torch.tensor([[1], [2], [3]]), torch.cat([features(i) for i in (1, 2, 3)]))
    one.exchange_rows(0, 2, num_tokens=4)
    one.move_row(0, 1, num_tokens=4)

    assert features(3).equal(one.read(0, torch.tensor([[3]])))
    assert features(3).equal(one.read(1, torch.tensor([[3]])))
    assert features(1).equal(one.read(2, torch.tensor([[1]])))


def test_of_a_short_row_no_more_than_its_tokens_moves() -> None:
    one = store()
    one.write(0, torch.tensor([[0, 3], [1, 2]]), torch.cat([features(0, 3), features(1, 2)]))
    one.move_row(0, 1, num_tokens=1)

    assert features(0).equal(one.read(1, torch.tensor([[0]])))
    assert features(1, 2).equal(one.read(1, torch.tensor([[1, 2]])))
