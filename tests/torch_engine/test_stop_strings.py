import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.torch_engine.stop_strings import Cut, StopStrings


def test_text_before_the_stop_string_is_shown_and_nothing_after_it() -> None:
    assert Cut("one ", stopped=True) == StopStrings(("two",)).feed("one two three")


def test_what_may_become_a_stop_string_is_held_back_until_decided() -> None:
    stops = StopStrings(("</end>",))

    assert Cut("a", stopped=False) == stops.feed("a</e")
    assert Cut("", stopped=False) == stops.feed("n")
    assert Cut("</en!", stopped=False) == stops.feed("!")


def test_a_stop_string_across_pieces_is_cut_out_whole() -> None:
    stops = StopStrings(("END",))

    assert ["x", "", ""] == [stops.feed(piece).text for piece in ("xE", "N", "D rest")]


def test_what_was_held_back_comes_out_when_the_text_ends() -> None:
    stops = StopStrings(("END",))
    stops.feed("the EN")

    assert "EN" == stops.flush()
    assert "" == stops.flush()


@pytest.mark.parametrize("stops", [("aab",), ("ab", "ba"), ("aaaa", "b")])
@given(text=st.text("abc", max_size=40))
def test_fed_one_character_at_a_time_it_finds_the_first_completed(
    stops: tuple[str, ...], text: str
) -> None:
    """The reference looks at the whole text again after each character."""
    watch = StopStrings(stops)
    shown, stopped = "", False
    for character in text:
        cut = watch.feed(character)
        shown += cut.text
        stopped = cut.stopped
        if stopped:
            break
    expected = next(
        (
            min(text[:end].find(stop) for stop in stops if stop in text[:end])
            for end in range(len(text) + 1)
            if any(stop in text[:end] for stop in stops)
        ),
        None,
    )

    assert (expected is not None) == stopped
    assert text[:expected] == shown + watch.flush()
