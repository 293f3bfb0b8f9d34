"""A difference as tables and figures, in the order of their weight."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specserve.errors import Doubt, Problem
from specserve.review.cells import (
    depth_cell,
    growth_cell,
    memory_cell,
    printable,
    short,
    value_cell,
)
from specserve.review.depths import DepthRow
from specserve.review.difference import Change, Difference
from specserve.review.measured import Measured
from specserve.review.plot import depth_plot
from specserve.review.side import Side
from specserve.rulebook import RULEBOOK


@dataclass(frozen=True, slots=True, kw_only=True)
class Table:
    """`head` names the columns; cells are one line each. `note` stands below."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Lines of equal-width characters."""

    title: str
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """Sentences."""

    title: str
    items: tuple[str, ...]


Section = Table | Figure | Listing

_BEFORE_AFTER = ("before", "after")


def sections(
    difference: Difference, measured: tuple[Measured, Measured] | None = None
) -> Iterator[Section]:
    """Only those that have something to say."""
    yield from _told("rules newly broken", map(str, difference.broken))
    yield from _told("dangers, new", map(_doubt, difference.dangers))
    yield from _told("warnings, new", map(_doubt, _warnings(difference)))
    yield from _told("rules no longer broken", map(_told_problem, difference.mended))
    yield from _told("dangers and warnings gone", map(_doubt, difference.settled))
    yield from _values("configuration", "key", difference.keys)
    yield from _depths(difference)
    yield from _arguments(difference.arguments)
    yield from _memory(difference)
    yield from _decided(difference.decided)
    if measured is not None:
        yield _measured(*measured)
    yield from _told("not known", _unknown(difference))


def _told(title: str, texts: Iterator[str]) -> Iterator[Listing]:
    items = tuple(printable(text) for text in texts)
    if items:
        yield Listing(title=title, items=items)


def _doubt(doubt: Doubt) -> str:
    return str(doubt)


def _told_problem(problem: Problem) -> str:
    return f"{problem.key} [{problem.rule}]"


def _warnings(difference: Difference) -> list[Doubt]:
    return [d for d in difference.doubts if RULEBOOK[d.rule].severity != "danger"]


def _values(title: str, name: str, changes: Sequence[Change]) -> Iterator[Table]:
    if changes:
        rows = [(c.name, value_cell(c.before), value_cell(c.after)) for c in changes]
        yield Table(title=title, head=(name, *_BEFORE_AFTER), rows=tuple(rows))


def _depths(difference: Difference) -> Iterator[Section]:
    if not difference.depths:
        return
    sides = [side for side in (difference.before, difference.after) if side.depths]
    notes = dict.fromkeys(side.depths.assumes for side in sides if side.depths)
    yield Table(
        title="depth by load",
        head=("running decodes", *_BEFORE_AFTER, ""),
        rows=tuple(_depth_row(row, difference) for row in difference.depths),
        note="; ".join(note for note in notes if note),
    )
    plot = depth_plot(difference.before.depths, difference.after.depths)
    yield Figure(title="depth by load, plotted", lines=tuple(plot))


def _depth_row(row: DepthRow, difference: Difference) -> tuple[str, ...]:
    before, after = difference.before.depths, difference.after.depths
    changed = "changed" if before and after and row.before != row.after else ""
    return (str(row), depth_cell(row.before, before), depth_cell(row.after, after), changed)


def _arguments(changes: Sequence[Change]) -> Iterator[Table]:
    if changes:
        rows = [(c.name, _argument(c.before), _argument(c.after), c.key) for c in changes]
        head = ("argument", *_BEFORE_AFTER, "from key")
        yield Table(title="engine arguments", head=head, rows=tuple(rows))


def _argument(value: object) -> str:
    if value == "":
        return "given"
    return short(value) if isinstance(value, str) else value_cell(value)


def _memory(difference: Difference) -> Iterator[Table]:
    plan = difference.after.plan
    if difference.memory and plan is not None:
        rows = [
            (c.name, memory_cell(c.before), memory_cell(c.after), growth_cell(c))
            for c in difference.memory
        ]
        yield Table(
            title=f"memory, {printable(plan.memory.device)}",
            head=("part", *_BEFORE_AFTER, "growth"),
            rows=tuple(rows),
            note=_room(difference),
        )


def _room(difference: Difference) -> str:
    tokens = [_tokens(side) for side in (difference.before, difference.after)]
    return f"KV tokens that fit beside the weights: {tokens[0]} before, {tokens[1]} after"


def _tokens(side: Side) -> str:
    fitting = side.plan.memory.fitting_tokens if side.plan else None
    return "unknown" if fitting is None else f"{fitting:,}"


def _decided(changes: Sequence[Change]) -> Iterator[Table]:
    if changes:
        rows = [(c.name, _plain(c.before), _plain(c.after)) for c in changes]
        title = "asked -> effective"
        yield Table(title=title, head=("key", *_BEFORE_AFTER), rows=tuple(rows))


def _plain(value: object) -> str:
    return short(value) if isinstance(value, str) else value_cell(value)


def _measured(before: Measured, after: Measured) -> Section:
    names = dict.fromkeys([*after.figures, *before.figures])
    if not names:
        if before.source == after.source:
            return Listing(title="measured", items=(f"before and after: {after.source}",))
        items = (f"before: {before.source}", f"after: {after.source}")
        return Listing(title="measured", items=items)
    rows = [(n, before.figures.get(n, "—"), after.figures.get(n, "—")) for n in names]
    return Table(
        title="measured last",
        head=("figure", *_BEFORE_AFTER),
        rows=tuple(rows),
        note=f"before: {before.source}; after: {after.source}",
    )


def _unknown(difference: Difference) -> Iterator[str]:
    """What was not compared, and why."""
    for name, side in (("before", difference.before), ("after", difference.after)):
        if side.config is not None and side.plan is None and not side.problems:
            reasons = "; ".join(f"{p.key}={p.value}: expected {p.expected}" for p in side.unplanned)
            yield f"{name}: engine arguments, memory and decided values, for no plan: {reasons}"
        if side.config is not None and side.depths is None and not side.problems:
            yield f"{name}: depth by load, for the calibration cannot be read"
