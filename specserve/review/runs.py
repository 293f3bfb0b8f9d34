"""Run folders: those of a configuration, and one as a side of a diff."""

import json
from pathlib import Path
from typing import Any

import yaml
from pydantic import ValidationError

from specserve.check.machine import PlanningMachine
from specserve.config.run import RunConfig
from specserve.config.validate import parse_run
from specserve.errors import ConfigError, Problem
from specserve.plan import Plan
from specserve.review.measured import RESULTS, Measured, read_measured
from specserve.review.side import Side, look_at, planned_before
from specserve.rule_ids import RuleId

CONFIG = "config.yaml"
_MOST_RUNS = 200


def last_measured(runs: Path, config: RunConfig | None) -> Measured:
    """Figures of the newest run below `runs` that had this very configuration and was measured."""
    if config is None or not runs.is_dir():
        return read_measured(None)
    asked = _comparable(config.model_dump(mode="json"))
    measured = [path.parent for path in runs.glob(f"*/{RESULTS}")]
    for folder in sorted(measured, reverse=True)[:_MOST_RUNS]:
        if _comparable(_read_tree(folder / CONFIG)) == asked:
            return read_measured(folder)
    return read_measured(None)


def side_of_run(folder: Path, machine: PlanningMachine) -> Side:
    """With the plan that it ran by; a plan of another version's form is made anew for `machine`.

    Raises ConfigError if the folder holds no run.
    """
    tree = read_run_config(folder / CONFIG)
    try:
        config = parse_run(tree)
        plan = Plan.model_validate_json((folder / "plan.json").read_bytes())
    except (ConfigError, OSError, ValidationError):
        return look_at(tree, machine)
    return planned_before(tree, config, plan)


def read_run_config(path: Path) -> dict[str, Any]:
    """A resolved configuration, such as the config.yaml of a run. Raises ConfigError."""
    tree = _read_tree(path)
    if tree is None or not RunConfig.model_fields.keys() <= tree.keys():
        expected = "a whole configuration, such as the config.yaml of a run folder"
        fix = "name an experiment instead, or write a file with `specserve --cfg job --resolve`"
        raise ConfigError(
            [
                Problem(
                    rule=RuleId.WRONG_ARGUMENT,
                    key="diff",
                    value=str(path),
                    expected=expected,
                    fix=fix,
                )
            ]
        )
    return tree


def _read_tree(path: Path) -> dict[str, Any] | None:
    try:
        tree = yaml.safe_load(path.read_bytes())
    except (OSError, yaml.YAMLError):
        return None
    return tree if isinstance(tree, dict) else None


def _comparable(tree: dict[str, Any] | None) -> str | None:
    """Without the secret, which a run folder does not keep."""
    if tree is None:
        return None
    server = {**tree.get("server", {}), "api_key": None}
    return json.dumps({**tree, "server": server}, sort_keys=True)
