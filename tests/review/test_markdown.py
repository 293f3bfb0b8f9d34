import pytest

from specserve.review.markdown import code, fenced, markdown_lines
from specserve.review.sections import Figure, Listing, Section, Table


@pytest.mark.parametrize(
    ("text", "span"),
    [
        ("a", "`a`"),
        ("", ""),
        ("a|b", r"`a\|b`"),
        ("a`b", "``a`b``"),
        ("`", "`` ` ``"),
        ("a``b`", "``` a``b` ```"),
        ("@all <b> [x](y)", "`@all <b> [x](y)`"),
    ],
)
def test_no_text_gets_out_of_its_code_span(text: str, span: str) -> None:
    assert span == code(text)


def test_no_line_ends_a_block() -> None:
    assert ["`````text", "````", "x", "`````"] == list(fenced(["````", "x"]))


def test_sections_become_tables_lists_and_blocks() -> None:
    sections: list[Section] = [
        Table(title="t", head=("a", "b"), rows=(("1", "2|"),), note="n"),
        Listing(title="l", items=("x",)),
        Figure(title="f", lines=("..",)),
    ]

    assert [
        "", "**t**", "", "| a | b |", "| --- | --- |", r"| `1` | `2\|` |", "", "`n`",
        "", "**l**", "", "- `x`",
        "", "```text", "..", "```",
    ] == list(markdown_lines(sections))  # fmt: skip


def test_a_title_with_the_name_of_a_device_is_no_markup() -> None:
    [_, title, *_] = markdown_lines([Listing(title="memory, <b>GPU</b>`*", items=())])

    assert "**memory,  b>GPU  b>  **" == title
