"""What git holds and what lies in its working tree, read without touching either."""

import os
import subprocess
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Literal

from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

Kind = Literal["file", "link", "other"]
_KINDS: dict[str, Kind] = {"100644": "file", "100755": "file", "120000": "link"}
_SECONDS = 60


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """A path below the top of the repository; `blob` is None in the working tree."""

    path: PurePosixPath
    kind: Kind
    num_bytes: int
    blob: str | None


@dataclass(frozen=True, slots=True)
class Repository:
    """`top` is the folder of the working tree, without symlinks in it."""

    top: Path

    def commit(self, revision: str) -> str | None:
        """The full hash of the commit that `revision` names; None if there is none."""
        return self._line("rev-parse", "--verify", "--quiet", "--end-of-options", f"{revision}^0")

    def merge_base(self, one: str, other: str) -> str | None:
        """The commit from which both come; None if the history here does not reach it."""
        return self._line("merge-base", one, other)

    def has_changes(self, folders: Sequence[PurePosixPath]) -> bool:
        """Whether the working tree differs from HEAD below `folders`, new files included."""
        paths = [_literal(folder) for folder in folders]
        return bool(self._read("status", "--porcelain", "-z", "-uall", "--", *paths))

    def entries_at(self, commit: str, folder: PurePosixPath) -> list[Entry]:
        """Everything below `folder` in `commit`; empty if it has no such folder."""
        where = [] if folder == PurePosixPath() else [str(folder)]
        listing = self._read("ls-tree", "-r", "-z", "--long", "--full-tree", commit, "--", *where)
        return [_entry(record) for record in _records(listing)]

    def contents(self, blobs: Sequence[str]) -> list[bytes]:
        """Of each blob, in order."""
        if not blobs:
            return []
        asked = "".join(f"{blob}\n" for blob in blobs).encode()
        return list(_split_batch(self._read("cat-file", "--batch", asked=asked), len(blobs)))

    def working_entries(self, folder: PurePosixPath) -> list[Entry]:
        """Tracked and new files below `folder` that lie there and are not ignored."""
        flags = ("--cached", "--others", "--exclude-standard", "--full-name")
        listing = self._read("ls-files", "-z", *flags, "--", _literal(folder))
        paths = dict.fromkeys(PurePosixPath(os.fsdecode(name)) for name in _records(listing))
        return [entry for path in sorted(paths) if (entry := self._on_disk(path)) is not None]

    def _on_disk(self, path: PurePosixPath) -> Entry | None:
        place = self.top / path
        if place.is_symlink():
            return Entry(path=path, kind="link", num_bytes=0, blob=None)
        if not place.exists():
            return None
        kind: Kind = "file" if place.is_file() else "other"
        return Entry(path=path, kind=kind, num_bytes=place.stat().st_size, blob=None)

    def _line(self, *arguments: str) -> str | None:
        done = _git(self.top, *arguments)
        return os.fsdecode(done.stdout).strip() if done.returncode == 0 else None

    def _read(self, *arguments: str, asked: bytes = b"") -> bytes:
        done = _git(self.top, *arguments, asked=asked)
        if done.returncode:
            raise ConfigError([_failed(arguments[0], os.fsdecode(done.stderr))])
        return done.stdout


def find_repository(folder: Path) -> Repository:
    """The repository that `folder` is in. Raises ConfigError if it is in none."""
    done = _git(folder, "rev-parse", "--show-toplevel")
    if done.returncode:
        raise ConfigError([_failed("rev-parse", os.fsdecode(done.stderr))])
    return Repository(Path(os.fsdecode(done.stdout).rstrip("\n")).resolve())


def _git(folder: Path, *arguments: str, asked: bytes = b"") -> subprocess.CompletedProcess[bytes]:
    """Takes no lock, asks nobody, and goes by its own messages, not by the user's language."""
    environment = {**os.environ, "LC_ALL": "C", "GIT_OPTIONAL_LOCKS": "0", "GIT_PAGER": "cat"}
    try:
        return subprocess.run(
            ["git", "-C", str(folder), *arguments],
            input=asked,
            capture_output=True,
            env=environment,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ConfigError([_failed(arguments[0], str(error))]) from error


def _literal(folder: PurePosixPath) -> str:
    """A pathspec from the top in which no character is a pattern."""
    return f":(top,literal){'' if folder == PurePosixPath() else folder}"


def _records(listing: bytes) -> list[bytes]:
    return [record for record in listing.split(b"\0") if record]


def _entry(record: bytes) -> Entry:
    """`<mode> <type> <hash> <size>\\t<path>`; the size of a submodule is a dash."""
    head, _, path = record.partition(b"\t")
    mode, _, blob, size = os.fsdecode(head).split()
    return Entry(
        path=PurePosixPath(os.fsdecode(path)),
        kind=_KINDS.get(mode, "other"),
        num_bytes=int(size) if size.isdecimal() else 0,
        blob=blob,
    )


def _split_batch(answer: bytes, count: int) -> Iterator[bytes]:
    """`<hash> <type> <size>\\n<contents>\\n`, one after the other."""
    start = 0
    for _ in range(count):
        line_end = answer.index(b"\n", start)
        size = int(answer[start:line_end].rsplit(b" ", 1)[1])
        yield answer[line_end + 1 : line_end + 1 + size]
        start = line_end + 1 + size + 1


def _failed(command: str, told: str) -> Problem:
    first = next((line for line in told.splitlines() if line.strip()), "it said nothing")
    return Problem(
        rule=RuleId.WRONG_ARGUMENT,
        key=f"git {command}",
        value=None,
        expected=f"git, and a repository that it can read ({first.removeprefix('fatal: ')})",
        fix="run it inside the repository that holds the configuration",
    )
