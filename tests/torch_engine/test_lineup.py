from collections.abc import Sequence

from hypothesis import given
from hypothesis import strategies as st

from specserve.testing.checkpoints import byte_tokenizer
from specserve.testing.loops import make_request
from specserve.torch_engine.active import ActiveRequest, Output
from specserve.torch_engine.bounds import RowBounds
from specserve.torch_engine.detokenize import token_decoder
from specserve.torch_engine.lineup import Lineup, Move

DECODER = token_decoder(byte_tokenizer(300))


def active(name: str, *, speculates: bool = True) -> ActiveRequest:
    request = make_request([1], request_id=name)
    bounds = RowBounds(length=1, num_pairs=1, has_hole=False)
    return ActiveRequest(
        request, Output(request, frozenset(), DECODER), bounds, speculates=speculates
    )


def carry_out(moves: Sequence[Move], rows: dict[int, str]) -> None:
    """What the moves do to the rows' contents."""
    for move in moves:
        if move.exchange:
            one, other = rows[move.source], rows[move.destination]
            rows[move.source], rows[move.destination] = other, one
        else:
            rows[move.destination] = rows.pop(move.source)


def test_the_last_one_fills_the_gap() -> None:
    lineup = Lineup()
    a, b, c = (active(name) for name in "abc")
    for row, request in enumerate((a, b, c)):
        lineup.add(request, row)

    (move,) = lineup.remove(a)

    assert (2, 0) == (move.source, move.destination)
    assert ["c", "b"] == [request.request.request_id for request in lineup.requests]
    assert [] == lineup.remove(b)


def test_one_that_speculates_changes_places_with_the_first_plain_one() -> None:
    lineup = Lineup()
    lineup.add(active("plain", speculates=False), 0)

    (move,) = lineup.add(active("fast"), 1)

    assert (0, 1, True) == (move.source, move.destination, move.exchange)
    assert 1 == lineup.num_speculating


@given(
    events=st.lists(
        st.tuples(st.booleans(), st.booleans(), st.integers(0, 9), st.integers(0, 2)), max_size=60
    )
)
def test_rows_hold_what_the_lineup_says(events: list[tuple[bool, bool, int, int]]) -> None:
    """Whatever comes and goes: no gap, speculating ones first, every row's content in its place."""
    lineup, rows, present = Lineup(), dict[int, str](), list[ActiveRequest]()
    for number, (comes, speculates, victim, distance) in enumerate(events):
        if comes or not present:
            request = active(str(number), speculates=speculates)
            row = len(lineup) + distance
            rows[row] = str(number)
            present.append(request)
            carry_out(lineup.add(request, row), rows)
        else:
            request = present.pop(victim % len(present))
            row = lineup.requests.index(request)
            del rows[row]
            carry_out(lineup.remove(request), rows)

        names = [one.request.request_id for one in lineup.requests]
        assert dict(enumerate(names)) == rows
        kinds = [one.speculates for one in lineup.requests]
        assert sorted(kinds, reverse=True) == kinds
        assert sum(kinds) == lineup.num_speculating
