"""make_plan: the order in which a plan is decided."""

from specserve.checkpoint.rules import CheckedPair, check_checkpoints
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts
from specserve.plan.cuda_graphs import choose_batch_sizes, coverage_warnings
from specserve.plan.execution import (
    choose_attention,
    choose_device,
    choose_num_threads,
)
from specserve.plan.notes import Notes
from specserve.plan.scheduler import plan_scheduler
from specserve.plan.speculation import plan_speculation
from specserve.plan.target import plan_target
from specserve.plan.values import Plan


def make_plan(config: RunConfig, facts: Facts) -> Plan:
    """Decide every "auto", with its reason; a value that the configuration sets is kept or refused.

    Pure. Raises ConfigError with all problems at once, a checkpoint that is not here among them.
    """
    missing = missing_checkpoints(config, facts)
    if missing or facts.target is None:
        raise ConfigError([*missing, *machine_problems(config, facts)])
    try:
        pair = check_checkpoints(config, facts.target, facts.draft)
    except ConfigError as error:
        raise ConfigError([*error.problems, *machine_problems(config, facts)]) from error
    notes = Notes()
    plan = _plan(config, facts, pair, notes)
    if notes.problems:
        raise ConfigError(notes.problems)
    return plan


def missing_checkpoints(config: RunConfig, facts: Facts) -> tuple[Problem, ...]:
    """One problem for each checkpoint that the run needs and that is not on this machine.

    Without them a configuration can be valid, but no plan can be made.
    """
    needed = [("model.path", config.model.path, facts.target)]
    if isinstance(config.speculation, Eagle3Speculation):
        path = config.speculation.draft.path
        needed.append(("speculation.draft.path", path, facts.draft))
    return tuple(
        Problem(
            key=key,
            value=path,
            expected="a checkpoint on this machine",
            fix=f"run `hf download {path} --local-dir DIR`, then set {key}=DIR",
        )
        for key, path, checkpoint in needed
        if checkpoint is None
    )


def machine_problems(config: RunConfig, facts: Facts) -> tuple[Problem, ...]:
    """What the machine alone makes impossible, whatever the checkpoints hold."""
    notes = Notes()
    device = choose_device(config, facts, notes)
    choose_batch_sizes(config, device, notes)
    return tuple(notes.problems)


def _plan(config: RunConfig, facts: Facts, pair: CheckedPair, notes: Notes) -> Plan:
    device = choose_device(config, facts, notes)
    target = plan_target(config, facts, pair, device, notes)
    speculation = plan_speculation(config, pair, target, notes)
    scheduler, memory = plan_scheduler(
        config, facts.machine, pair, device, target, speculation, notes
    )
    batch_sizes = choose_batch_sizes(config, device, notes)
    for warning in coverage_warnings(
        batch_sizes,
        config.policy,
        max_running_requests=scheduler.max_running_requests,
        num_draft_tokens=speculation.num_draft_tokens if speculation else None,
    ):
        notes.warn(warning)
    return Plan(
        engine=config.engine.kind,
        device=device,
        num_threads=choose_num_threads(config, facts.machine, notes),
        target=target,
        speculation=speculation,
        policy=config.policy,
        scheduler=scheduler,
        attention=choose_attention(config, facts.machine, notes),
        cuda_graph_batch_sizes=batch_sizes,
        tensor_parallel=config.parallel.tensor_parallel,
        num_nodes=config.parallel.num_nodes,
        self_test_tokens=config.build.self_test_tokens,
        memory=memory,
        adjustments=tuple(notes.adjustments),
        warnings=tuple(notes.warnings),
    )
