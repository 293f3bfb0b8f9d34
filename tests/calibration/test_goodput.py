import pytest

from specserve.calibration.goodput import expected_tokens


def test_a_round_yields_its_accepted_tokens_and_the_bonus_token() -> None:
    assert pytest.approx([1.0, 1.8, 2.4, 2.4]) == expected_tokens([0.8, 0.6, 0.0])


@pytest.mark.parametrize("p", [0.1, 0.7])
def test_with_the_same_chance_for_each_token_it_is_the_geometric_sum(p: float) -> None:
    """Leviathan et al. (2023), equation 1: (1 - p^(k+1)) / (1 - p)."""
    formula = [(1 - p ** (k + 1)) / (1 - p) for k in range(5)]

    assert pytest.approx(formula) == expected_tokens([p**i for i in range(1, 5)])
