"""make_plan: the order in which a plan is decided."""

from collections.abc import Iterator

from specserve.checkpoint.rules import CheckedPair, check_checkpoints
from specserve.config.paths import BUNDLED
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation, draft_path
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts
from specserve.plan.calibration import choose_calibration
from specserve.plan.cuda_graphs import choose_batch_sizes, coverage_doubts, has_graphs
from specserve.plan.drafters import plan_drafter
from specserve.plan.execution import (
    choose_attention,
    choose_device,
    choose_num_threads,
    gpu_count_problems,
)
from specserve.plan.memory_rows import plan_memory
from specserve.plan.notes import Notes
from specserve.plan.room import find_room
from specserve.plan.rows import row_slack, row_tokens
from specserve.plan.scheduler import plan_scheduler
from specserve.plan.sglang import number_problems, plan_sglang
from specserve.plan.speculation import plan_speculation
from specserve.plan.target import plan_target
from specserve.plan.values import Plan
from specserve.rule_ids import RuleId


def make_plan(config: RunConfig, facts: Facts) -> Plan:
    """Decide every "auto", with its reason; a value that the configuration sets is kept or refused.

    Pure, but for the calibration file that a cost_model names. Raises ConfigError with all problems
    at once, a checkpoint that is not here among them.
    """
    missing = missing_checkpoints(config, facts)
    if missing or facts.target is None:
        raise ConfigError([*missing, *machine_problems(config, facts)])
    try:
        pair = check_checkpoints(config, facts.target, facts.draft)
    except ConfigError as error:
        problems = [*_draft_of_another_model(config), *error.problems]
        raise ConfigError([*problems, *machine_problems(config, facts)]) from error
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
    path = draft_path(config.speculation)
    if path is not None:
        needed.append(("speculation.draft.path", path, facts.draft))
    return tuple(
        Problem(
            rule=RuleId.CHECKPOINT_NOT_HERE,
            key=key,
            value=path,
            expected="a checkpoint on this machine",
            fix=f"run `hf download {path} --local-dir DIR`, then set {key}=DIR",
        )
        for key, path, checkpoint in needed
        if checkpoint is None
    )


def _draft_of_another_model(config: RunConfig) -> Iterator[Problem]:
    """Why a pair may not fit: another target was set, and the bundled draft is still there."""
    if not isinstance(config.speculation, Eagle3Speculation):
        return
    draft = config.speculation.draft.path
    if draft.startswith(BUNDLED) and not config.model.path.startswith(BUNDLED):
        yield Problem(
            rule=RuleId.BUNDLED_DRAFT,
            key="model.draft_path",
            value=draft,
            expected=f"the EAGLE-3 head of model.path={config.model.path}; this one was trained "
            "for the bundled target, and the two do not fit",
            fix="set model.draft_path=FOLDER, or choose speculation=off policy=off",
        )


def machine_problems(config: RunConfig, facts: Facts) -> tuple[Problem, ...]:
    """What the machine alone makes impossible, whatever the checkpoints hold."""
    notes = Notes()
    device = choose_device(config, facts, notes)
    notes.refuse(gpu_count_problems(config, facts.machine))
    choose_batch_sizes(config, device, notes)
    choose_calibration(config, facts, notes)
    choose_attention(config, facts.machine, notes)
    notes.refuse(number_problems(config, facts.machine.gpus))
    return tuple(notes.problems)


def _plan(config: RunConfig, facts: Facts, pair: CheckedPair, notes: Notes) -> Plan:
    device = choose_device(config, facts, notes)
    target = plan_target(config, facts, pair, device, notes)
    calibration = choose_calibration(config, facts, notes)
    graphs = has_graphs(config, device)
    speculation = plan_speculation(
        config, pair, target, calibration, notes, has_graphs=graphs
    ) or plan_drafter(config, facts.draft, pair, target, calibration, notes, has_graphs=graphs)
    notes.refuse(number_problems(config, facts.machine.gpus))
    num_threads = choose_num_threads(config, facts.machine, notes)
    tokens = row_tokens(target.context_length, row_slack(speculation))
    room = find_room(
        config,
        facts,
        pair,
        device,
        num_threads,
        target,
        speculation,
        tokens,
        notes,
    )
    scheduler = plan_scheduler(config, device, target.context_length, tokens, room, notes)
    memory = plan_memory(config, pair, device, target, speculation, scheduler, room, notes)
    batch_sizes = choose_batch_sizes(config, device, notes)
    for doubt in coverage_doubts(
        batch_sizes,
        config.policy,
        max_running_requests=scheduler.max_running_requests,
        num_draft_tokens=speculation.num_draft_tokens if speculation else None,
    ):
        notes.warn(doubt)
    return Plan(
        engine=config.engine.kind,
        device=device,
        num_threads=num_threads,
        target=target,
        speculation=speculation,
        policy=config.policy,
        calibration=calibration,
        scheduler=scheduler,
        attention=choose_attention(config, facts.machine, notes),
        cuda_graph_batch_sizes=batch_sizes,
        tensor_parallel=config.parallel.tensor_parallel,
        num_nodes=config.parallel.num_nodes,
        self_test_tokens=config.build.self_test_tokens,
        memory=memory,
        sglang=plan_sglang(config, pair),
        adjustments=tuple(notes.adjustments),
        warnings=tuple(notes.doubts),
    )
