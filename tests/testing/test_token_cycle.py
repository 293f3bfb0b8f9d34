import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.testing.token_cycle import TokenCycle, make_successors


def cycle_of(size: int, p: float, *, seed: int = 0, first_id: int = 257) -> TokenCycle:
    return TokenCycle(first_id=first_id, successors=make_successors(size, p, seed), eos_id=256)


@given(size=st.integers(8, 300), p=st.floats(0, 1), seed=st.integers(0, 50))
def test_the_target_visits_every_position_before_it_repeats(size: int, p: float, seed: int) -> None:
    num_jumps = round((1 - p) * size)
    if num_jumps in (1, 2):
        return
    cycle = cycle_of(size, p, seed=seed)

    visited = cycle.output([257], size)

    assert set(range(257, 257 + size)) == set(visited)
    assert num_jumps == len(cycle.jumps)


@pytest.mark.parametrize("p", [0.995, 0.99])
def test_one_or_two_jumps_are_refused_with_what_works(p: float) -> None:
    with pytest.raises(ValueError, match=r"expected 0 or at least 3; use p=1.0, p=0.985 or less"):
        make_successors(200, p, 0)


def test_a_perfect_draft_is_always_right() -> None:
    cycle = cycle_of(20, 1.0)

    assert (258, 259, 260) == cycle.output([257], 3)
    assert (257, 258) == cycle.output([276], 2)
    assert (5,) * 9 == cycle.accepted([257], 9, 5)
    assert 6.0 == cycle.acceptance_length(5)


def test_with_p_zero_no_proposal_is_ever_right() -> None:
    cycle = cycle_of(20, 0.0)

    assert (0,) * 40 == cycle.accepted([257], 40, 5)
    assert 1.0 == cycle.acceptance_length(5)


def test_rounds_are_counted_between_jumps() -> None:
    """After prefill's 1: [2 3 4] jump-free; from 4 the target jumps to 6."""
    cycle = TokenCycle(first_id=0, successors=(1, 2, 3, 4, 6, 0, 7, 5), eos_id=99)

    assert (4, 5, 7) == cycle.jumps
    assert (1, 2, 3, 4, 6, 7, 5, 0, 1) == cycle.output([0], 9)
    # Starts 1 -> emits 2 3 4 (2 accepted of 2); 4 -> 6 (0 accepted); 6 -> 7 5 (1); 5 -> 0 (0).
    assert (2, 0, 1, 0) == cycle.accepted([0], 4, 2)


@given(num_steps=st.integers(1, 8), seed=st.integers(0, 20), start=st.integers(0, 199))
def test_rounds_emit_what_the_text_has(num_steps: int, seed: int, start: int) -> None:
    """Replaying the counts along the text: inside a round x + 1 follows, at its end if it can't."""
    cycle = cycle_of(200, 0.7, seed=seed)
    counts = cycle.accepted([start], 40, num_steps)
    text = list(cycle.output([start], 41 * (num_steps + 1)))

    for count in counts:
        proposed = [257 + (text[0] - 257 + step) % 200 for step in range(1, num_steps + 1)]
        emitted = text[1 : count + 2]

        assert proposed[:count] == emitted[:count]
        assert count == num_steps or proposed[count] != emitted[count]
        text = text[count + 1 :]


@pytest.mark.parametrize("num_steps", [1, 3, 8])
@pytest.mark.parametrize("p", [0.3, 0.7, 0.9])
def test_the_mean_of_the_rounds_is_the_formula(p: float, num_steps: int) -> None:
    """Over cycles with other jumps the mean of exact counts comes to (1 - p^(k+1)) / (1 - p)."""
    counts = [
        count
        for seed in range(20)
        for count in cycle_of(400, p, seed=seed).accepted([257], 400, num_steps)
    ]

    formula = (1 - p ** (num_steps + 1)) / (1 - p)
    assert pytest.approx(formula) == cycle_of(400, p).acceptance_length(num_steps)
    assert pytest.approx(formula, rel=0.03) == 1 + sum(counts) / len(counts)


def test_other_ids_stand_for_a_position() -> None:
    cycle = cycle_of(100, 1.0)

    assert 0 == cycle.position(257)
    assert 99 == cycle.position(356)
    assert 57 == cycle.position(357)
    assert 3 == cycle.position(3)
    assert (261,) == cycle.output([1, 2, 3], 1)


def test_a_text_ends_with_the_end_token_unless_it_is_ignored() -> None:
    cycle = TokenCycle(first_id=257, successors=make_successors(20, 1.0, 0), eos_id=260)

    assert (258, 259, 260) == cycle.output([257], 10)
    assert (258, 259, 260, 261, 262) == cycle.output([257], 5, ignore_eos=True)
