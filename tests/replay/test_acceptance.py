import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specserve.replay.acceptance import by_chance, by_rate, falls


def test_a_chance_for_each_token_given_the_one_before() -> None:
    assert pytest.approx((0.5, 0.25, 0.125)) == by_chance(0.5, 3)


@settings(deadline=None)
@given(chance=st.floats(0, 1), num_steps=st.integers(1, 16))
def test_a_rate_gives_back_the_chance_that_it_comes_from(chance: float, num_steps: int) -> None:
    """accepted / drafted of rounds of that depth is the mean over the positions."""
    rate = sum(by_chance(chance, num_steps)) / num_steps

    assert pytest.approx(by_chance(chance, 3), abs=1e-9) == by_rate(rate, num_steps, 3)


def test_the_rate_of_single_tokens_is_the_chance() -> None:
    assert pytest.approx((0.6, 0.36)) == by_rate(0.6, 1, 2)


@pytest.mark.parametrize(
    ("acceptance", "expected"),
    [((), True), ((1.0, 1.0, 0.0), True), ((0.5, 0.6), False), ((1.1,), False), ((-0.1,), False)],
)
def test_chances_of_positions_never_grow(acceptance: tuple[float, ...], expected: bool) -> None:
    assert expected == falls(acceptance)
