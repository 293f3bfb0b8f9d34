"""One side of a review: a commit or the working tree, ready to compose from."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import Any

from specserve.check.machine import PlanningMachine
from specserve.config.compose import compose_tree
from specserve.config.leaves import leaves
from specserve.config.problems import SECRETS
from specserve.config.quote import override
from specserve.config.unread_environment import unread_environment
from specserve.errors import ConfigError, Doubt
from specserve.review.folders import ConfigFolders, Roots, roots_in
from specserve.review.git import Entry
from specserve.review.side import Side, look_at
from specserve.review.snapshot import AtCommit, InWorkingTree, Snapshot, Source, take_snapshot
from specserve.rule_ids import RuleId

_LARGEST_FILE = 4 << 20


@dataclass(frozen=True, slots=True, kw_only=True)
class Revision:
    """`label` is what people call it."""

    label: str
    folders: ConfigFolders
    source: Source
    snapshot: Snapshot
    roots: Roots

    def side(
        self, experiment: str | None, overrides: Sequence[str], machine: PlanningMachine
    ) -> Side:
        """The experiment as it stands here, composed without this machine's environment."""
        words = [override("+experiment", experiment)] if experiment else []
        try:
            tree = self._compose([*words, *overrides])
        except ConfigError as error:
            return Side(problems=tuple(map(self.snapshot.relabelled, error.problems)))
        side = look_at(tree, machine, self._file)
        return self._relabelled(replace(side, doubts=(*side.doubts, *_written_secrets(tree))))

    def _compose(self, words: Sequence[str]) -> dict[str, Any]:
        with unread_environment():
            return compose_tree(words, self.roots.config_dirs, conf=self.roots.conf)

    def _file(self, path: str) -> str:
        """Where a file that a configuration names lies on this side: copied, if it is in git."""
        top = self.folders.repository.top
        if not Path(path).is_relative_to(top):
            return path
        inside = PurePosixPath(Path(path).relative_to(top))
        copy = self.snapshot.root / inside
        found = [entry for entry in self.source.entries(inside) if _is_readable(entry, inside)]
        for entry, contents in zip(found, self.source.contents(found), strict=True):
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.write_bytes(contents[: entry.num_bytes])
        return str(copy)

    def _relabelled(self, side: Side) -> Side:
        return replace(
            side,
            problems=tuple(map(self.snapshot.relabelled, side.problems)),
            unplanned=tuple(map(self.snapshot.relabelled, side.unplanned)),
            doubts=tuple(map(self._relabelled_doubt, side.doubts)),
        )

    def _relabelled_doubt(self, doubt: Doubt) -> Doubt:
        return replace(doubt, text=self.snapshot.without_root(doubt.text))


def at_commit(commit: str, label: str, folders: ConfigFolders, copy: Path) -> Revision:
    """Copies the configuration of `commit` into the empty folder `copy`."""
    return _revision(AtCommit(folders.repository, commit), label, folders, copy)


def in_working_tree(label: str, folders: ConfigFolders, copy: Path) -> Revision:
    """Copies the configuration as it lies in the working tree into the empty folder `copy`."""
    return _revision(InWorkingTree(folders.repository), label, folders, copy)


def _revision(source: Source, label: str, folders: ConfigFolders, copy: Path) -> Revision:
    copy.mkdir()
    snapshot = take_snapshot(source, folders.inside, copy.resolve())
    return Revision(
        label=label,
        folders=folders,
        source=source,
        snapshot=snapshot,
        roots=roots_in(folders, snapshot.root),
    )


def _written_secrets(tree: Mapping[str, Any]) -> Iterator[Doubt]:
    """What the environment would supply is `$NAME` here."""
    for key, value in leaves(tree):
        if key in SECRETS and isinstance(value, str) and not value.startswith("$"):
            yield Doubt(
                rule=RuleId.SECRET_IN_A_FILE,
                key=key,
                text=f"{key} is written in a file of the repository: whoever may read it has the "
                f"secret. Write {key}: ${{oc.env:NAME}} there, and take another one",
            )


def _is_readable(entry: Entry, path: PurePosixPath) -> bool:
    return entry.path == path and entry.kind == "file" and entry.num_bytes <= _LARGEST_FILE
