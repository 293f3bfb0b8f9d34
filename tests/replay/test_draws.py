import pytest

from specserve.replay.draws import Draws


def test_counts_of_a_chain_never_grow_and_fit_the_round() -> None:
    counters = Draws(0).verify(50, 3, (0.8, 0.5, 0.2))

    assert (3, 50, 150, 3) == (
        counters.num_steps,
        counters.verified,
        counters.drafted,
        len(counters.accepted_by_position),
    )
    assert sorted(counters.accepted_by_position, reverse=True) == list(
        counters.accepted_by_position
    )


def test_on_average_they_are_the_true_acceptance() -> None:
    counters = Draws(0).verify(100_000, 3, (0.8, 0.5, 0.2))

    assert pytest.approx([80_000, 50_000, 20_000], abs=600) == counters.accepted_by_position


@pytest.mark.parametrize(("chance", "expected"), [(1.0, (9, 9)), (0.0, (0, 0))])
def test_certainty_is_certain(chance: float, expected: tuple[int, ...]) -> None:
    assert expected == Draws(3).verify(9, 2, (chance, chance)).accepted_by_position


def test_a_shallower_round_asks_fewer_positions() -> None:
    assert 1 == len(Draws(0).verify(9, 1, (0.8, 0.5, 0.2)).accepted_by_position)


def test_a_seed_repeats_itself() -> None:
    acceptance = (0.5, 0.3)
    one, two, other = Draws(1), Draws(1), Draws(2)

    assert [one.verify(20, 2, acceptance) for _ in range(5)] == [
        two.verify(20, 2, acceptance) for _ in range(5)
    ]
    assert Draws(1).verify(200, 2, acceptance) != other.verify(200, 2, acceptance)
