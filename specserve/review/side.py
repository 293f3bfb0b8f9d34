"""One configuration, looked at as far as it can be: composed, valid, planned."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from specserve.check import report_on
from specserve.check.machine import PlanningMachine
from specserve.config.policy import CostModelPolicy
from specserve.config.run import RunConfig
from specserve.config.validate import parse_run
from specserve.config.warnings import config_warnings
from specserve.errors import ConfigError, Doubt, Problem
from specserve.explain.engine_arguments import EngineArgument, engine_view
from specserve.plan import Plan
from specserve.review.depths import LoadDepths, depths_by_load

_OF_THE_MACHINE = "SPEC7"  # the kind of rules that another machine may satisfy


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """What could be found out. `problems`: why it is refused, on any machine.

    `tree` is None if it does not compose, `config` if it is not valid, `plan` if it cannot be
    planned for this machine, for the reasons in `unplanned`. `depths` is None if nobody knows it.
    """

    tree: Mapping[str, Any] | None = None
    problems: tuple[Problem, ...] = ()
    config: RunConfig | None = None
    plan: Plan | None = None
    unplanned: tuple[Problem, ...] = ()
    doubts: tuple[Doubt, ...] = ()
    arguments: tuple[EngineArgument, ...] = ()
    depths: LoadDepths | None = None


def look_at(
    tree: Mapping[str, Any], machine: PlanningMachine, find_file: Callable[[str], str] = str
) -> Side:
    """Of a composed tree. `find_file` says where a file that it names lies on this side."""
    try:
        config = parse_run(tree)
    except ConfigError as error:
        return Side(tree=tree, problems=error.problems)
    found = _with_its_files(config, find_file)
    try:
        report = report_on(found, machine.facts_of(found))
        view = engine_view(report.plan, machine.sglang) if report.plan else None
    except ConfigError as error:
        return _unplanned(tree, config, found, error.problems)
    plan = view.plan if view else None
    return Side(
        tree=tree,
        config=config,
        plan=plan,
        unplanned=report.missing,
        doubts=(*config_warnings(config), *(plan.warnings if plan else ())),
        arguments=view.arguments if view else (),
        depths=depths_by_load(found, plan),
    )


def planned_before(tree: Mapping[str, Any], config: RunConfig, plan: Plan) -> Side:
    """Of a run that was planned already, wherever that was; its arguments are not known."""
    return Side(
        tree=tree,
        config=config,
        plan=plan,
        doubts=(*config_warnings(config), *plan.warnings),
        depths=depths_by_load(config, plan),
    )


def _with_its_files(config: RunConfig, find_file: Callable[[str], str]) -> RunConfig:
    if not isinstance(config.policy, CostModelPolicy):
        return config
    calibration = find_file(config.policy.calibration)
    policy = config.policy.model_copy(update={"calibration": calibration})
    return config.model_copy(update={"policy": policy})


def _unplanned(
    tree: Mapping[str, Any], config: RunConfig, found: RunConfig, problems: tuple[Problem, ...]
) -> Side:
    """What only this machine lacks breaks no configuration."""
    if all(problem.rule.startswith(_OF_THE_MACHINE) for problem in problems):
        return Side(
            tree=tree,
            config=config,
            unplanned=problems,
            doubts=config_warnings(config),
            depths=depths_by_load(found, None),
        )
    return Side(tree=tree, problems=problems, config=config, doubts=config_warnings(config))
