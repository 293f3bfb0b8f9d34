"""The folder of one run (design §9): unique, and enough to run it again."""

import hashlib
import json
import secrets
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Any

import yaml

from specserve.config.run import RunConfig
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts
from specserve.plan import Plan
from specserve.rule_ids import RuleId
from specserve.worker.events import EventLog
from specserve.worker.ledger import Ledger

PACKAGE = Path(__file__).parent.parent
RUNS = Path("runs")
REDACTED = "<redacted>"


@dataclass(frozen=True, slots=True)
class RunDirectory:
    """A folder that this run has made, and nobody else writes to."""

    path: Path

    def open_ledger(self) -> Ledger:
        """Raises JournalError if it can't be opened."""
        return Ledger(self.path / "ledger.jsonl")

    def open_events(self) -> EventLog:
        """Raises JournalError if it can't be opened."""
        return EventLog(self.path / "events.jsonl")


def create_run_directory(
    asked: Path | None, *, run: RunConfig, overrides: Sequence[str], facts: Facts, plan: Plan
) -> RunDirectory:
    """Make the folder and write down what the run is made of, before anything is built.

    Without `asked` the name is the time and a random suffix under runs/. Raises ConfigError if
    the folder exists, whoever made it, or can't be written.
    """
    path = (asked or RUNS / unique_name(datetime.now().astimezone())).absolute()
    try:
        path.mkdir(parents=True, exist_ok=False)
        (path / "config.yaml").write_text(config_yaml(run), encoding="utf-8")
        (path / "overrides.txt").write_text("".join(f"{o}\n" for o in overrides), encoding="utf-8")
        (path / "plan.json").write_text(plan.model_dump_json(indent=2), encoding="utf-8")
        (path / "facts.json").write_text(facts_json(facts, plan.engine), encoding="utf-8")
    except FileExistsError:
        expected = "a folder that does not exist yet"
        raise ConfigError([_problem(path, expected, was_asked=asked is not None)]) from None
    except OSError as error:
        expected = f"a folder that can be written ({error.strerror or error})"
        raise ConfigError([_problem(path, expected, was_asked=asked is not None)]) from error
    return RunDirectory(path)


def unique_name(time: datetime) -> str:
    """Sorts by time; two of the same second differ."""
    return f"{time:%Y-%m-%d_%H-%M-%S}_{secrets.token_hex(4)}"


def config_yaml(run: RunConfig) -> str:
    """The resolved configuration, with secrets left out."""
    tree = run.model_dump(mode="json")
    if tree["server"]["api_key"] is not None:
        tree["server"]["api_key"] = REDACTED
    return yaml.safe_dump(tree, sort_keys=False, allow_unicode=True)


def facts_json(facts: Facts, engine: str) -> str:
    """The facts of the plan, the commit, and the engine's modules with their hashes."""
    tree: dict[str, Any] = {
        "facts": facts.model_dump(mode="json"),
        "commit": git_commit(PACKAGE.parent),
        "modules": module_hashes(PACKAGE / f"{engine}_engine"),
    }
    return json.dumps(tree, indent=2, ensure_ascii=False)


def module_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of every module of `folder`, by absolute path."""
    return {
        str(path): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(folder.rglob("*.py"))
    }


def git_commit(checkout: Path) -> str | None:
    """The commit that `checkout` is the top of, with "+changes" if it isn't clean.

    None if it is no checkout (an installed package may lie inside somebody else's), or without
    git.
    """
    top = _git(checkout, "rev-parse", "--show-toplevel")
    if top is None or Path(top) != checkout.resolve():
        return None
    commit = _git(checkout, "rev-parse", "HEAD")
    if commit is None:
        return None
    return f"{commit}+changes" if _git(checkout, "status", "--porcelain") else commit


def _git(folder: Path, *arguments: str) -> str | None:
    """What git prints; None if it is absent, fails or takes more than a moment."""
    try:
        done = subprocess.run(
            ["git", "-C", str(folder), *arguments],
            capture_output=True,
            text=True,
            timeout=5,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def _problem(path: Path, expected: str, *, was_asked: bool) -> Problem:
    elsewhere = "set hydra.run.dir to another folder"
    return Problem(
        rule=RuleId.RUN_DIRECTORY,
        key="hydra.run.dir",
        value=str(path),
        expected=expected,
        fix=f"{elsewhere}, or leave it out for a new one under {RUNS}/"
        if was_asked
        else f"{elsewhere}, or start where this user may write",
    )
