"""One cell of a trace as the number that it should be."""

import math

from specserve.replay.records import Record


class WrongCellError(Exception):
    """What a line should hold, and how to mend it; who knows the file names the line."""

    def __init__(self, expected: str, fix: str) -> None:
        super().__init__(expected)
        self.expected = expected
        self.fix = fix


def finite(record: Record, name: str) -> float:
    """The number in column `name`."""
    return _finite(name, record.cells[name])


def whole(record: Record, name: str, least: int) -> int:
    """The integer in column `name`, `least` or more; 40.0 is one, since recorders write that."""
    value = _finite(name, record.cells[name])
    if value < least or not value.is_integer():
        shown = _shown(record.cells[name])
        expected = f"{name} a whole number from {least} on, found {shown}"
        raise WrongCellError(expected, f"count requests: {name}={max(round(value), least)}")
    return int(value)


def share(name: str, value: object) -> float:
    """`value` as a chance, 0 … 1."""
    number = _finite(name, value)
    if not 0 <= number <= 1:
        fix = f"write it as a share: {name}={min(max(number / 100, 0), 1):g}"
        raise WrongCellError(f"{name} from 0 to 1, found {_shown(value)}", fix)
    return number


def _finite(name: str, value: object) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        expected = f"{name} a number, found {_shown(value)}"
        raise WrongCellError(expected, f"write {name} as a plain number, or remove the line")
    return float(value)


def _shown(value: object) -> str:
    return "nothing" if value is None else repr(value)
