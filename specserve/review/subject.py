"""What a diff compares: an experiment, a run folder, a configuration file, or another revision."""

import re
import shlex
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from specserve.check.machine import PlanningMachine
from specserve.config.compose import compose_tree
from specserve.config.quote import override
from specserve.errors import ConfigError, Problem
from specserve.review.folders import find_folders
from specserve.review.git import find_repository
from specserve.review.review_command import known_commit
from specserve.review.revision import at_commit
from specserve.review.runs import CONFIG, read_run_config, side_of_run
from specserve.review.side import Side, look_at
from specserve.rule_ids import RuleId

_AT_REVISION = re.compile(r"(?P<revision>[^\s:=]+):(?P<experiment>[^\s:=]*)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Subject:
    """`name` as typed, `kind` what it was taken for."""

    name: str
    kind: str
    side: Side


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    """What all subjects share."""

    overrides: tuple[str, ...]
    config_dirs: tuple[Path, ...]
    machine: PlanningMachine


def read_subject(typed: str, context: Context) -> Subject:
    """`NAME [OVERRIDES]` in one word; NAME may be left out for the defaults.

    NAME is a run folder or a file if one of that name lies there, `REV:EXPERIMENT` an experiment
    of another revision (`REV:` its defaults), and an experiment otherwise. Raises ConfigError.
    """
    words = _split(typed)
    name = words[0] if words and "=" not in words[0] else ""
    overrides = (*words[1 if name else 0 :], *context.overrides)
    path = Path(name)
    if name and (path.is_dir() or path.suffix in (".yaml", ".yml")):
        return _read_file(typed, path, overrides, context)
    at_revision = _AT_REVISION.fullmatch(name)
    if at_revision is not None:
        side = _side_at(at_revision["revision"], at_revision["experiment"], overrides, context)
        return Subject(name=typed, kind="at a revision", side=side)
    return Subject(name=typed, kind="an experiment", side=_composed(name, overrides, context))


def _split(typed: str) -> list[str]:
    try:
        return shlex.split(typed)
    except ValueError as error:
        raise ConfigError(
            [_problem(typed, f"words that end ({error})", "close the quote")]
        ) from error


def _read_file(typed: str, path: Path, overrides: Sequence[str], context: Context) -> Subject:
    if overrides:
        expected = "no overrides: a file is compared as it is"
        raise ConfigError([_problem(" ".join(overrides), expected, "leave them out")])
    if path.is_dir():
        return Subject(name=typed, kind="a run folder", side=side_of_run(path, context.machine))
    side = look_at(read_run_config(path), context.machine)
    return Subject(name=typed, kind="a run folder" if path.name == CONFIG else "a file", side=side)


def _composed(experiment: str, overrides: Sequence[str], context: Context) -> Side:
    words = [override("+experiment", experiment)] if experiment else []
    tree = compose_tree([*words, *overrides], context.config_dirs)
    return look_at(tree, context.machine)


def _side_at(revision: str, experiment: str, overrides: Sequence[str], context: Context) -> Side:
    repository = find_repository(Path.cwd())
    commit = known_commit(repository, revision, "diff")
    folders = find_folders(repository, context.config_dirs)
    with TemporaryDirectory(prefix="specserve-diff-") as temporary:
        there = at_commit(commit, revision, folders, Path(temporary) / "copy")
        return there.side(experiment or None, overrides, context.machine)


def _problem(value: str, expected: str, fix: str) -> Problem:
    return Problem(rule=RuleId.WRONG_ARGUMENT, key="diff", value=value, expected=expected, fix=fix)
