"""The configuration files of one side, copied into a folder of their own, and only those.

Hydra then composes from the copy: nothing is checked out, no symlink is followed out of the tree,
and a file that must not be read (too large, not text, out of the tree) is a file that does not
compose, so that just the experiments that need it fail, by its name.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Protocol

from specserve.errors import Problem
from specserve.review.git import Entry, Repository
from specserve.review.yaml_limits import YamlRefused, check_yaml
from specserve.rule_ids import RuleId

_DOES_NOT_COMPOSE = '"refused'  # a quotation that never ends
_TOO_LARGE_TO_COPY = 1 << 26


class Source(Protocol):
    """Where files are read from: a commit, or the working tree."""

    def entries(self, folder: PurePosixPath) -> list[Entry]:
        """Everything below `folder`."""
        ...

    def contents(self, entries: Sequence[Entry]) -> list[bytes]:
        """Of each entry, in order; of a symlink, where it points to."""
        ...


@dataclass(frozen=True, slots=True)
class AtCommit:
    """Files as they were committed."""

    repository: Repository
    commit: str

    def entries(self, folder: PurePosixPath) -> list[Entry]:
        """Everything below `folder`."""
        return self.repository.entries_at(self.commit, folder)

    def contents(self, entries: Sequence[Entry]) -> list[bytes]:
        """One process for all of them."""
        return self.repository.contents([entry.blob for entry in entries if entry.blob])


@dataclass(frozen=True, slots=True)
class InWorkingTree:
    """Files as they lie there, committed or not."""

    repository: Repository

    def entries(self, folder: PurePosixPath) -> list[Entry]:
        """Everything below `folder` that git does not ignore."""
        return self.repository.working_entries(folder)

    def contents(self, entries: Sequence[Entry]) -> list[bytes]:
        """Read one by one."""
        top = self.repository.top
        return [
            str((top / entry.path).readlink()).encode()
            if entry.kind == "link"
            else (top / entry.path).read_bytes()
            for entry in entries
        ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """The copy is at `root`; `refused` are the files in it that do not compose, by their path."""

    root: Path
    refused: dict[str, Problem]

    def relabelled(self, problem: Problem) -> Problem:
        """The problem with files by their path in the repository, and with why they are refused."""
        file = self.without_root(problem.key).partition(":")[0]
        if problem.rule is RuleId.BAD_YAML and file in self.refused:
            return self.refused[file]
        return replace(
            problem,
            key=self.without_root(problem.key),
            value=self.without_root(problem.value)
            if isinstance(problem.value, str)
            else problem.value,
            expected=self.without_root(problem.expected),
            fix=self.without_root(problem.fix),
        )

    def without_root(self, text: str) -> str:
        """`text` without the folder that the copy happens to be in."""
        return text.replace(f"{self.root}/", "")


def take_snapshot(source: Source, folders: Sequence[PurePosixPath], root: Path) -> Snapshot:
    """Copy every YAML file below `folders` to the same path below `root`."""
    entries = {
        entry.path: entry
        for folder in folders
        for entry in source.entries(folder)
        if entry.path.suffix == ".yaml"
    }
    refused: dict[str, Problem] = {}
    readable = [
        e for e in entries.values() if e.kind == "file" and e.num_bytes <= _TOO_LARGE_TO_COPY
    ]
    texts = dict(zip((e.path for e in readable), source.contents(readable), strict=True))
    links = [e for e in entries.values() if e.kind == "link"]
    targets = dict(zip((e.path for e in links), source.contents(links), strict=True))
    for path, entry in entries.items():
        contents = texts.get(path)
        if entry.kind == "link":
            contents = texts.get(_inside(path, targets[path]))
        problem = _why_refused(entry, contents, targets.get(path))
        if problem is not None:
            refused[str(path)] = problem
        _write(root / path, contents if problem is None else None)
    return Snapshot(root=root, refused=refused)


def _inside(link: PurePosixPath, target: bytes) -> PurePosixPath:
    """The path that a symlink points to, below the top; one that leads out names nothing."""
    parts: list[str] = list(link.parent.parts)
    where = PurePosixPath(target.decode("utf-8", "surrogateescape"))
    if where.is_absolute():
        return where
    for part in where.parts:
        if part == ".." and not parts:
            return PurePosixPath("/")
        if part == "..":
            parts.pop()
        else:
            parts.append(part)
    return PurePosixPath(*parts)


def _why_refused(entry: Entry, contents: bytes | None, target: bytes | None) -> Problem | None:
    path = str(entry.path)
    if target is not None and contents is None:
        expected = "a symlink to a YAML file of the configuration; no other is followed"
        value = target.decode("utf-8", "backslashreplace")
        return _problem(path, value, expected, "put the file there itself")
    if contents is None:
        found = f"{entry.num_bytes:,} bytes" if entry.kind == "file" else "no file"
        return _problem(path, found, "a configuration file", "remove it")
    try:
        check_yaml(contents)
    except YamlRefused as refused:
        key = f"{path}:{refused.line}"
        return _problem(key, refused.found, refused.expected, "mend that line")
    return None


def _problem(key: str, value: str, expected: str, fix: str) -> Problem:
    return Problem(rule=RuleId.BAD_YAML, key=key, value=value, expected=expected, fix=fix)


def _write(path: Path, contents: bytes | None) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_DOES_NOT_COMPOSE.encode() if contents is None else contents)
