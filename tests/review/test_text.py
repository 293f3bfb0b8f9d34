from specserve.review.sections import Figure, Listing, Section, Table
from specserve.review.text import text_lines


def test_columns_are_aligned_and_nothing_trails() -> None:
    sections: list[Section] = [
        Table(
            title="t", head=("key", "b", ""), rows=(("x", "long", "!"), ("y", "2", "")), note="n"
        ),
        Listing(title="l", items=("one",)),
        Figure(title="f", lines=("..",)),
    ]

    assert [
        "", "t", "  key  b", "  x    long  !", "  y    2", "  n",
        "", "l", "  one",
        "", "f", "  ..",
    ] == list(text_lines(sections))  # fmt: skip
