"""What comes before the first process: measure, plan, bind the port, write the run directory."""

import socket
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specserve.config.run import RunConfig
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts, gather_facts
from specserve.plan import Plan, make_plan
from specserve.rule_ids import RuleId
from specserve.serve.listener import bind
from specserve.worker.run_directory import RunDirectory, create_run_directory


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A run that nothing known beforehand forbids."""

    run: RunConfig
    facts: Facts
    plan: Plan
    listener: socket.socket
    directory: RunDirectory


def prepare(run: RunConfig, *, overrides: Sequence[str], run_directory: Path | None) -> Prepared:
    """Raises ConfigError, and leaves no folder of a run that can't start."""
    _refuse_unstartable(run)
    facts = gather_facts(run)
    plan = make_plan(run, facts)
    listener = bind(run.server)
    try:
        directory = create_run_directory(
            run_directory, run=run, overrides=overrides, facts=facts, plan=plan
        )
    except BaseException:
        listener.close()
        raise
    return Prepared(run=run, facts=facts, plan=plan, listener=listener, directory=directory)


def _refuse_unstartable(run: RunConfig) -> None:
    if run.engine.kind == "sglang":
        problem = Problem(
            rule=RuleId.ENGINE_NOT_STARTED,
            key="engine",
            value="sglang",
            expected="torch: sglang can be checked and planned, not yet started by this version",
            fix="set engine=torch, or use `specserve check`",
        )
        raise ConfigError([problem])
