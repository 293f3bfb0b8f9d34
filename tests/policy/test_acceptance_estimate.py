import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.policy.acceptance_estimate import AcceptanceEstimate
from specserve.policy.observation import RoundCounters, count_round


def round_of(verified: int, *accepted: int) -> RoundCounters:
    return RoundCounters(
        num_steps=len(accepted),
        verified=verified,
        drafted=verified * len(accepted),
        accepted_by_position=accepted,
    )


def test_it_begins_with_the_prior() -> None:
    estimate = AcceptanceEstimate([0.8, 0.4, 0.0], window_rounds=8)

    assert pytest.approx([0.8, 0.4, 0.0]) == estimate.acceptance
    assert pytest.approx([1.0, 1.8, 2.2, 2.2]) == estimate.expected_tokens


def test_it_comes_to_what_is_seen() -> None:
    estimate = AcceptanceEstimate([1.0, 1.0, 1.0], window_rounds=8)
    for _ in range(200):
        estimate.observe(round_of(10, 7, 5, 1))

    assert pytest.approx([0.7, 0.5, 0.1], abs=1e-4) == estimate.acceptance


def test_an_observation_weighs_half_after_the_window() -> None:
    """All accepted so far, then none at all: after the window each counts for one half."""
    estimate = AcceptanceEstimate([1.0], window_rounds=16)
    for _ in range(1000):
        estimate.observe(round_of(4, 4))
    for _ in range(16):
        estimate.observe(round_of(4, 0))

    assert pytest.approx(0.5, abs=1e-6) == estimate.acceptance[0]


def test_requests_weigh_alike_whether_they_come_in_one_round_or_another() -> None:
    large_first, small_first = (AcceptanceEstimate([0.5], 1_000_000) for _ in range(2))
    for accepted, verified in ((30, 32), (0, 1)):
        large_first.observe(round_of(verified, accepted))
    for accepted, verified in ((0, 1), (30, 32)):
        small_first.observe(round_of(verified, accepted))

    assert pytest.approx(large_first.acceptance[0]) == small_first.acceptance[0]


def test_what_is_not_drafted_keeps_its_last_known_chance() -> None:
    """Draft token 2 is still accepted half as often as token 1, which now fares worse."""
    estimate = AcceptanceEstimate([0.8, 0.4], window_rounds=4)
    for _ in range(100):
        estimate.observe(round_of(10, 2))

    assert pytest.approx([0.2, 0.1], abs=1e-4) == estimate.acceptance


def test_the_prior_weighs_as_much_as_a_window_of_one_request() -> None:
    estimate = AcceptanceEstimate([1.0], window_rounds=8)
    for _ in range(8):
        estimate.observe(round_of(1, 0))

    fresh = sum(0.5 ** (age / 8) for age in range(8))
    assert pytest.approx(4 / (4 + fresh)) == estimate.acceptance[0]


def test_tokens_deeper_than_the_prior_are_ignored() -> None:
    estimate = AcceptanceEstimate([0.5], window_rounds=1)
    estimate.observe(round_of(4, 4, 4, 4))

    assert 1 == len(estimate.acceptance)


@given(
    prior=st.lists(st.floats(0, 1), max_size=5).map(lambda chances: sorted(chances)[::-1]),
    window=st.integers(1, 50),
    rounds=st.lists(
        st.tuples(st.integers(1, 5), st.lists(st.integers(0, 5), max_size=20)), max_size=50
    ),
)
def test_chances_lie_within_0_and_1_and_never_grow(
    prior: list[float], window: int, rounds: list[tuple[int, list[int]]]
) -> None:
    estimate = AcceptanceEstimate(prior, window)
    for num_steps, accepted in rounds:
        estimate.observe(count_round(num_steps, num_steps, [min(n, num_steps) for n in accepted]))

    bounded = [1.0, *estimate.acceptance, 0.0]
    assert sorted(bounded, reverse=True) == bounded


def test_it_does_not_fade_into_nothing() -> None:
    """Thousands of rounds that never reach token 2 teach nothing about it."""
    estimate = AcceptanceEstimate([0.5, 0.25], window_rounds=1)
    for _ in range(5000):
        estimate.observe(round_of(3, 0, 0))
    for _ in range(60):
        estimate.observe(round_of(3, 3))

    assert pytest.approx([1.0, 0.5]) == estimate.acceptance
