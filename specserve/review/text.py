"""Sections for a terminal."""

from collections.abc import Iterator, Sequence

from specserve.review.sections import Figure, Listing, Section, Table


def text_lines(sections: Sequence[Section]) -> Iterator[str]:
    """A blank line before each section."""
    for section in sections:
        yield ""
        yield section.title
        match section:
            case Table():
                yield from _table(section)
            case Figure():
                yield from (f"  {line}" for line in section.lines)
            case Listing():
                yield from (f"  {item}" for item in section.items)


def _table(table: Table) -> Iterator[str]:
    rows = [table.head, *table.rows]
    widths = [max(len(row[column]) for row in rows) for column in range(len(table.head))]
    for row in rows:
        cells = (f"{cell:<{width}}" for cell, width in zip(row, widths, strict=True))
        yield f"  {'  '.join(cells)}".rstrip()
    if table.note:
        yield f"  {table.note}"
