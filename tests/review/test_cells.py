import pytest

from specserve.review.cells import (
    LONGEST,
    depth_cell,
    growth_cell,
    memory_cell,
    printable,
    short,
    value_cell,
)
from specserve.review.depths import Depth, LoadDepths
from specserve.review.difference import ABSENT, Change

SIDE = LoadDepths(depths=(Depth(3, 3),), assumes="")


@pytest.mark.parametrize(
    ("value", "cell"),
    [
        (3, "3"),
        (3.0, "3.0"),
        ("3", '"3"'),
        (None, "null"),
        (True, "true"),
        ([1, "a"], '[1, "a"]'),
        (ABSENT, "—"),
        ("Ünï", '"Ünï"'),
    ],
)
def test_a_value_shows_its_type(value: object, cell: str) -> None:
    assert cell == value_cell(value)


def test_what_does_not_print_is_escaped() -> None:
    """A reordering mark could make a value look like another one."""
    assert r"a\u202eb\x00c\nd" == printable("a\u202eb\x00c\nd")


def test_what_is_cut_off_is_said() -> None:
    assert "x" * LONGEST == short("x" * LONGEST)
    assert f"{'x' * LONGEST}… (1,000 characters)" == short("x" * 1000)


def test_depths_are_in_words_and_unknown_is_not_plain() -> None:
    cells = [depth_cell(Depth(*depth), SIDE) for depth in [(0, 0), (1, 1), (3, 0)]]

    assert ["plain", "1 step", "3 steps; plain coming from more"] == cells
    assert ("not admitted", "—") == (depth_cell(None, SIDE), depth_cell(None, None))


def test_memory_has_a_sign_where_it_grows() -> None:
    change = Change(name="kv", key="kv", before=1 << 20, after=3 << 20)
    new = Change(name="kv", key="kv", before=ABSENT, after=3 << 20)

    assert ("+2.0 MiB", "+3.0 MiB") == (growth_cell(change), growth_cell(new))
    assert ("1,024.0 MiB", "—") == (memory_cell(1 << 30), memory_cell(ABSENT))
