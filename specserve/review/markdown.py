"""Sections as GitHub-flavoured Markdown; whatever a cell holds, it stays in its cell."""

import re
from collections.abc import Iterator, Sequence

from specserve.review.sections import Figure, Listing, Section, Table

_BACKTICKS = re.compile(r"`+")


def markdown_lines(sections: Sequence[Section]) -> Iterator[str]:
    """A blank line before each section."""
    for section in sections:
        yield ""
        match section:
            case Table():
                yield f"**{_title(section.title)}**"
                yield ""
                yield from _table(section)
            case Figure():
                yield from fenced(section.lines)
            case Listing():
                yield f"**{_title(section.title)}**"
                yield ""
                yield from (f"- {code(item)}" for item in section.items)


def fenced(lines: Sequence[str]) -> Iterator[str]:
    """Text as it stands; no line of it can end the block."""
    ticks = max((len(run) for line in lines for run in _BACKTICKS.findall(line)), default=0)
    fence = "`" * max(3, ticks + 1)
    yield f"{fence}text"
    yield from lines
    yield fence


def code(text: str) -> str:
    """`text` as a code span: no link, no mention, no HTML, no end of a table's cell."""
    if not text:
        return ""
    ticks = "`" * (max((len(run) for run in _BACKTICKS.findall(text)), default=0) + 1)
    room = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{ticks}{room}{text}{room}{ticks}".replace("|", r"\|")


def _table(table: Table) -> Iterator[str]:
    yield _row(table.head)
    yield _row(["---"] * len(table.head))
    for row in table.rows:
        yield _row([code(cell) for cell in row])
    if table.note:
        yield ""
        yield code(table.note)


def _row(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _title(title: str) -> str:
    """Titles are specserve's own words, but for the name of a device."""
    return re.sub(r"[^\w ,>().-]", " ", title)
