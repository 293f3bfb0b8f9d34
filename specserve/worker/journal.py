"""Append-only JSON lines: one record a line, flushed as it is written."""

from pathlib import Path
from typing import Generic, TypeVar

import msgspec

from specserve.errors import SpecserveError

T = TypeVar("T")


class JournalError(SpecserveError):
    """A journal can't be written, or holds a line that is no record of its kind."""


class Journal(Generic[T]):
    """The only writer of one file. Each record is out of this process once `append` returns."""

    def __init__(self, path: Path) -> None:
        """Raises JournalError, naming the file, if it can't be opened."""
        self._path = path
        try:
            self._file = path.open("ab")
        except OSError as error:
            raise JournalError(f"{path}: cannot be opened for appending: {error}") from error

    def append(self, record: T) -> None:
        """Write one line. Raises JournalError: a record that is lost must stop its caller."""
        try:
            self._file.write(msgspec.json.encode(record) + b"\n")
            self._file.flush()
        except (OSError, ValueError) as error:  # ValueError: the file is closed
            raise JournalError(f"{self._path}: cannot be written: {error}") from error

    def close(self) -> None:
        """Safe to call twice."""
        self._file.close()


def read_journal(path: Path, kind: type[T]) -> tuple[T, ...]:
    """All records, in order. A last line without its newline was being written: it is left out.

    Raises JournalError, naming file and line, for any other line that is no `kind`.
    """
    try:
        *lines, _unfinished = path.read_bytes().split(b"\n")
    except OSError as error:
        raise JournalError(f"{path}: cannot be read: {error}") from error
    return tuple(_decode(path, number, line, kind) for number, line in enumerate(lines, start=1))


def _decode(path: Path, number: int, line: bytes, kind: type[T]) -> T:
    try:
        return msgspec.json.decode(line, type=kind)
    except msgspec.DecodeError as error:
        raise JournalError(f"{path}:{number}: not a {kind.__name__}: {error}") from error
