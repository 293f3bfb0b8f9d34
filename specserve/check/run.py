"""Check one run: everything that can be known before a GPU is touched, as a report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specserve.config.load import load_run
from specserve.config.paths import name_of_path
from specserve.config.run import RunConfig
from specserve.config.warnings import config_warnings
from specserve.errors import ConfigError, Doubt, Problem
from specserve.facts import Facts, gather_facts, load_facts
from specserve.plan import (
    Adjustment,
    Plan,
    machine_problems,
    make_plan,
    memory_table,
    missing_checkpoints,
)
from specserve.rulebook import RULEBOOK
from specserve.sglang_engine.arguments import ServerArguments
from specserve.sglang_engine.settle import Settled, settle

_NEEDS_CHECKPOINTS = (
    "architecture, tensors, vocabularies, auxiliary layers and context length of the checkpoints, "
    "the memory plan, and every value that is decided from them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a check found. `plan` is None if a checkpoint is `missing` on this machine.

    `adjustments` and `warnings` have those of the engine beside the plan's own; `arguments` are
    SGLang's, None for engine=torch.
    """

    config: RunConfig
    facts: Facts
    plan: Plan | None
    missing: tuple[Problem, ...]
    adjustments: tuple[Adjustment, ...]
    warnings: tuple[Doubt, ...]
    arguments: ServerArguments | None

    def __str__(self) -> str:
        return "\n".join(_lines(self))


def check_run(
    overrides: Sequence[str], config_dirs: Sequence[Path], facts_file: Path | None
) -> Report:
    """Compose, validate, measure (or read `facts_file`) and plan; start nothing, no torch.

    A checkpoint that is not on this machine is no error here: what needs it is reported as not
    checked. Raises ConfigError with all problems.
    """
    config = load_run(overrides, config_dirs).config
    return report_on(config, gather_facts(config) if facts_file is None else load_facts(facts_file))


def report_on(config: RunConfig, facts: Facts) -> Report:
    """The report on a valid run. Raises ConfigError with what `facts` make impossible."""
    missing = missing_checkpoints(config, facts)
    if missing:
        problems = machine_problems(config, facts)
        if problems:
            raise ConfigError(problems)
    plan = None if missing else make_plan(config, facts)
    settled = None if plan is None else _as_carried_out(plan, facts)
    kept = settled.plan if settled else plan
    return Report(
        config=config,
        facts=facts,
        plan=plan,
        missing=missing,
        adjustments=kept.adjustments if kept else (),
        warnings=(*config_warnings(config), *(kept.warnings if kept else ())),
        arguments=settled.arguments if settled else None,
    )


def _as_carried_out(plan: Plan, facts: Facts) -> Settled | None:
    """With what SGLang decides by itself; None without it.

    Raises ConfigError with what it would not keep.
    """
    return None if plan.sglang is None else settle(plan, facts.versions.get("sglang"))


def _lines(report: Report) -> Iterator[str]:
    config = report.config
    yield "OK"
    yield f"  model         {_served_name(report)} ({config.model.path})"
    yield (
        f"  asked         engine={config.engine.kind} speculation={config.speculation.kind} "
        f"policy={config.policy.kind} scheduler={config.scheduler.kind}"
    )
    yield f"  planned for   {_machine(report.facts)} ({report.facts.source})"
    if report.plan is None:
        yield "  checked       composition, values, rules across sections, machine"
    else:
        yield "  checked       composition, values, rules across sections, machine, checkpoints"
        yield from (f"  {line}" for line in memory_table(report.plan))
    for problem in report.missing:
        yield f"  not here      {problem.key}={problem.value}: to have it, {problem.fix}"
    if report.missing:
        yield f"  not checked   {_NEEDS_CHECKPOINTS}"
    for doubt in report.warnings:
        yield f"  {RULEBOOK[doubt.rule].severity:13} {doubt}"
    for change in report.adjustments:
        yield f"  {change.key}: {change.asked} -> {change.effective} ({change.reason})"
    if report.arguments is not None:
        yield f"  arguments of SGLang {report.arguments.release}, and the keys that they come from"
        yield from (f"    {line}" for line in str(report.arguments).splitlines())


def _served_name(report: Report) -> str:
    if report.plan is not None:
        return report.plan.target.name
    model = report.config.model
    return name_of_path(model.path) if model.name == "auto" else model.name


def _machine(facts: Facts) -> str:
    machine = facts.machine
    names = [gpu.name for gpu in machine.gpus]
    gpus = f"{len(names)} GPUs ({', '.join(sorted(set(names)))})" if names else "no GPU"
    return f"{machine.cpu_count} CPUs, {machine.memory_bytes / 2**30:.1f} GiB, {gpus}"
