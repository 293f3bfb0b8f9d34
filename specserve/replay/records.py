"""The lines of a trace file as values by column: CSV with a header, or one JSON object a line."""

import csv
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

_MOST_SHOWN = 8


@dataclass(frozen=True, slots=True)
class Record:
    """One line (counted from 1) and its cells: numbers, None for an empty one, else what it is."""

    line: int
    cells: dict[str, Any]


def read_records(path: Path) -> list[Record]:
    """All lines of `path`, each with the same columns; blank lines are skipped.

    Raises ConfigError with the problems of the lines.
    """
    text = _text(path)
    found = list(_json_lines(path, text) if text.lstrip().startswith("{") else _csv(path, text))
    refuse(path, [entry for entry in found if isinstance(entry, Problem)])
    records = [entry for entry in found if isinstance(entry, Record)]
    if not records:
        raise ConfigError([_empty(path)])
    refuse(path, list(_mixed(path, records)))
    return records


def line_problem(path: Path, line: int, expected: str, fix: str) -> Problem:
    """What is wrong in one line of a trace."""
    return Problem(
        rule=RuleId.BAD_TRACE, key="--trace", value=f"{path}:{line}", expected=expected, fix=fix
    )


def refuse(path: Path, problems: list[Problem]) -> None:
    """Raise ConfigError if there are any; of very many the first ones, and how many more."""
    if len(problems) > _MOST_SHOWN:
        more = Problem(
            rule=RuleId.BAD_TRACE,
            key="--trace",
            value=str(path),
            expected=f"a trace without the {len(problems) - _MOST_SHOWN} further problems of it",
            fix="correct what writes the file",
        )
        raise ConfigError([*problems[:_MOST_SHOWN], more])
    if problems:
        raise ConfigError(problems)


def _text(path: Path) -> str:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ConfigError(
            [
                Problem(
                    rule=RuleId.BAD_TRACE,
                    key="--trace",
                    value=str(path),
                    expected=f"a file that can be read ({error.strerror})",
                    fix="name a CSV or JSONL file, or use --generate",
                )
            ]
        ) from error
    try:
        return data.decode("utf-8-sig")  # spreadsheets begin UTF-8 with a byte order mark
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        expected = f"UTF-8, found the byte 0x{data[error.start]:02x}"
        fix = "save the file as UTF-8, or convert it with iconv -t UTF-8"
        raise ConfigError([line_problem(path, line, expected, fix)]) from error


def _csv(path: Path, text: str) -> Iterator[Record | Problem]:
    reader = csv.reader(text.splitlines())
    header: list[str] | None = None
    for cells in reader:
        if not any(cell.strip() for cell in cells):
            continue
        if header is None:
            header = [cell.strip() for cell in cells]
            yield from _repeated(path, reader.line_num, header)
        elif len(cells) != len(header):
            expected = f"{len(header)} cells as in the header, found {len(cells)}"
            yield line_problem(path, reader.line_num, expected, "give every column a cell")
        else:
            values = [_cell(cell.strip()) for cell in cells]
            yield Record(reader.line_num, dict(zip(header, values, strict=True)))


def _repeated(path: Path, line: int, header: list[str]) -> Iterator[Problem]:
    for name in sorted({name for name in header if header.count(name) > 1}):
        yield line_problem(path, line, f"each column once, found {name} twice", f"remove a {name}")


def _cell(text: str) -> object:
    """A number if `text` is one (also nan and inf, to be refused by name), None if it is empty."""
    if not text:
        return None
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    return text


def _json_lines(path: Path, text: str) -> Iterator[Record | Problem]:
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            cells = json.loads(line)
        except json.JSONDecodeError as error:
            expected = f"one JSON object, but at column {error.colno}: {error.msg}"
            yield line_problem(path, number, expected, "write one object a line")
            continue
        if isinstance(cells, dict):
            yield Record(number, cells)
        else:
            expected = f"one JSON object, found {line.strip()[:40]}"
            yield line_problem(path, number, expected, "write one object a line")


def _mixed(path: Path, records: Iterable[Record]) -> Iterator[Problem]:
    first, *others = records
    for record in others:
        if record.cells.keys() != first.cells.keys():
            names = ", ".join(record.cells) or "none"
            expected = f"the columns of line {first.line}, {', '.join(first.cells)}; found {names}"
            fix = "give every line the same columns (null where a value is not known)"
            yield line_problem(path, record.line, expected, fix)


def _empty(path: Path) -> Problem:
    return Problem(
        rule=RuleId.BAD_TRACE,
        key="--trace",
        value=str(path),
        expected="lines of time and running_decodes, found none",
        fix="record at least two lines: the last one says when the trace ends",
    )
