"""`specserve check`: everything that can be known before a GPU is touched, as a report."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.config.warnings import config_warnings
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts, gather_facts, load_facts
from specserve.plan import Plan, machine_problems, make_plan, missing_checkpoints

_NEEDS_CHECKPOINTS = (
    "architecture, tensors, vocabularies, auxiliary layers and context length of the checkpoints, "
    "the memory plan, and every value that is decided from them"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """What a check found. `plan` is None if a checkpoint is `missing` on this machine."""

    config: RunConfig
    facts: Facts
    plan: Plan | None
    missing: tuple[Problem, ...]
    warnings: tuple[str, ...]

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
    facts = gather_facts(config) if facts_file is None else load_facts(facts_file)
    missing = missing_checkpoints(config, facts)
    if missing:
        problems = machine_problems(config, facts)
        if problems:
            raise ConfigError(problems)
    plan = None if missing else make_plan(config, facts)
    return Report(
        config=config,
        facts=facts,
        plan=plan,
        missing=missing,
        warnings=(*config_warnings(config), *(plan.warnings if plan else ())),
    )


def _lines(report: Report) -> Iterator[str]:
    config = report.config
    yield "OK"
    yield f"  model         {config.model.name} ({config.model.path})"
    yield (
        f"  asked         engine={config.engine.kind} speculation={config.speculation.kind} "
        f"policy={config.policy.kind} scheduler={config.scheduler.kind}"
    )
    yield f"  planned for   {_machine(report.facts)} ({report.facts.source})"
    if report.plan is None:
        yield "  checked       composition, values, rules across sections, machine"
    else:
        yield "  checked       composition, values, rules across sections, machine, checkpoints"
        yield f"  memory        {_memory(report.plan)}"
    for problem in report.missing:
        yield f"  not here      {problem.key}={problem.value}: to have it, {problem.fix}"
    if report.missing:
        yield f"  not checked   {_NEEDS_CHECKPOINTS}"
    for warning in report.warnings:
        yield f"  warning       {warning}"
    for change in report.plan.adjustments if report.plan else ():
        yield f"  {change.key}: {change.asked} -> {change.effective} ({change.reason})"


def _machine(facts: Facts) -> str:
    machine = facts.machine
    names = [gpu.name for gpu in machine.gpus]
    gpus = f"{len(names)} GPUs ({', '.join(sorted(set(names)))})" if names else "no GPU"
    return f"{machine.cpu_count} CPUs, {machine.memory_bytes / 2**30:.1f} GiB, {gpus}"


def _memory(plan: Plan) -> str:
    parts = {
        "target": plan.memory.target_weight_bytes,
        "draft": plan.memory.draft_weight_bytes,
        "KV": plan.memory.kv_bytes,
        "draft KV": plan.memory.draft_kv_bytes,
        "features": plan.memory.feature_bytes,
    }
    return ", ".join(f"{name} {size / 2**20:,.1f} MiB" for name, size in parts.items() if size)
