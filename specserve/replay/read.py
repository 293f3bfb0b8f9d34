"""A recorded load: the lines of a file, understood and checked. What is wrong is named by line."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path

from specserve.errors import ConfigError, Problem
from specserve.replay.acceptance_columns import FORMS, ReadAcceptance, acceptance_reader
from specserve.replay.cells import WrongCellError, finite, whole
from specserve.replay.records import Record, line_problem, read_records, refuse
from specserve.replay.trace import Row, Trace, hold
from specserve.rule_ids import RuleId

_LOAD = ("time", "running_decodes")


def read_trace(path: Path, positions: int, default: Sequence[float]) -> Trace:
    """The trace in `path`, with acceptance for `positions` draft tokens in every row.

    Columns: `time` in seconds, increasing, from any origin; `running_decodes`; and, if known, one
    of FORMS for acceptance: without it, every row has `default`. An empty cell of acceptance
    keeps what the line before says. The last line only says when the trace ends.
    Raises ConfigError with the problems of all lines (the first few of many).
    """
    records = read_records(path)
    acceptance = _acceptance_of(path, records[0], positions, default)
    found = list(_rows(path, records, acceptance))
    refuse(path, [entry for entry in found if isinstance(entry, Problem)])
    rows = [entry for entry in found if isinstance(entry, Row)]
    refuse(path, list(_out_of_order(path, records, rows)))
    if not any(row.running_decodes for row in rows[:-1]):
        raise ConfigError([_nothing_runs(path)])
    return hold(rows, str(path))


def _acceptance_of(
    path: Path, first: Record, positions: int, default: Sequence[float]
) -> ReadAcceptance:
    missing = [name for name in _LOAD if name not in first.cells]
    others = [name for name in first.cells if name not in _LOAD]
    reader = acceptance_reader(others, positions)
    if missing:
        expected = f"columns time and running_decodes, found {', '.join(first.cells)}"
        raise ConfigError([_columns(path, expected, f"name {' and '.join(missing)}")])
    if others and reader is None:
        expected = f"beside time and running_decodes only {FORMS}; found {', '.join(others)}"
        raise ConfigError([_columns(path, expected, "leave out the other columns")])
    return reader or (lambda _: tuple(default))


def _rows(
    path: Path, records: Sequence[Record], acceptance: ReadAcceptance
) -> Iterator[Row | Problem]:
    known: tuple[float, ...] | None = None
    for record in records:
        try:
            time, running = finite(record, "time"), whole(record, "running_decodes", 0)
            stated = acceptance(record)
            known = known if stated is None else stated
            if known is None:
                raise WrongCellError("acceptance in the first line, found none", "give it there")
        except WrongCellError as error:
            yield line_problem(path, record.line, error.expected, error.fix)
        else:
            yield Row(time=time, running_decodes=running, acceptance=known)


def _out_of_order(path: Path, records: Sequence[Record], rows: Sequence[Row]) -> Iterator[Problem]:
    for record, (before, row) in zip(records[1:], pairwise(rows), strict=True):
        if row.time <= before.time:
            expected = f"a time after {before.time:g}, that of the line before; found {row.time:g}"
            yield line_problem(path, record.line, expected, "sort the lines by time, each once")


def _columns(path: Path, expected: str, fix: str) -> Problem:
    return Problem(
        rule=RuleId.BAD_TRACE, key="--trace", value=str(path), expected=expected, fix=fix
    )


def _nothing_runs(path: Path) -> Problem:
    return Problem(
        rule=RuleId.BAD_TRACE,
        key="--trace",
        value=str(path),
        expected="two lines or more, and requests that decode before the last one",
        fix="record at least two lines: the last one says when the trace ends",
    )
