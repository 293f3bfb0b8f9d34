from hypothesis import given
from hypothesis import strategies as st

from specserve.torch_engine.bounds import RowBounds, window_of

NUM_STEPS = 3


def fresh(length: int = 10, num_pairs: int = 1) -> RowBounds:
    return RowBounds(length=length, num_pairs=num_pairs, has_hole=False)


def test_a_settled_round_leaves_exact_counts() -> None:
    row = fresh()
    row.launched_speculative(0, NUM_STEPS, skips=False)
    known_at_launch = (row.length_known, row.pairs_known)
    row.settle(0, NUM_STEPS, 2)

    assert (False, False) == known_at_launch
    assert (12, 2) == (row.max_length, row.max_pairs)
    assert (True, True) == (row.length_known, row.pairs_known)


def test_plain_rounds_are_known_in_advance() -> None:
    row = fresh()
    row.launched_plain(keeps_up=False)
    row.launched_plain(keeps_up=False)

    assert (12, 3, True) == (row.max_length, row.max_pairs, row.length_known)
    row.launched_plain(keeps_up=True)

    assert 1 == row.max_pairs


def test_rows_of_different_length_share_a_window_that_is_not_exact() -> None:
    window = window_of([fresh(10), fresh(12)], most_pairs=4)

    assert (12, False) == (window.kv_tokens, window.lengths_known)


def test_a_gap_longer_than_the_store_is_skipped() -> None:
    window = window_of([fresh(num_pairs=9)], most_pairs=4)

    assert (4, True, False) == (window.num_pairs, window.skips, window.entries_known)


def test_a_hole_is_never_forgotten() -> None:
    row = fresh()
    row.launched_speculative(0, NUM_STEPS, skips=True)
    row.settle(0, NUM_STEPS, 1)

    assert window_of([row], most_pairs=4).lengths_known
    assert not window_of([row], most_pairs=4).entries_known


@given(
    rounds=st.lists(
        st.one_of(st.integers(1, NUM_STEPS + 1), st.sampled_from(["keep", "lack"])), max_size=30
    ),
    num_ahead=st.integers(0, 1),
)
def test_bounds_hold_whatever_is_under_way(rounds: list[int | str], num_ahead: int) -> None:
    """Against exact bookkeeping, settling one launch late as the overlap scheduler does."""
    row = fresh()
    length, pairs = 10, 1
    under_way: list[tuple[int, int]] = []
    for launch, added in enumerate(rounds):
        if isinstance(added, int):
            row.launched_speculative(launch, NUM_STEPS, skips=False)
            under_way.append((launch, added))
            length, pairs = length + added, added
        else:
            row.launched_plain(keeps_up=added == "keep")
            length, pairs = length + 1, 1 if added == "keep" else pairs + 1
        while under_way and under_way[0][0] <= launch - num_ahead:
            serial, num_added = under_way.pop(0)
            row.settle(serial, NUM_STEPS, num_added)

        assert length <= row.max_length
        assert pairs <= row.max_pairs
        assert not row.length_known or length == row.max_length
        assert not row.pairs_known or pairs == row.max_pairs
