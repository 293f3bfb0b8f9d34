"""A policy asked about one load, and what its answer means for the engine."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from specserve.calibration.read import read_calibration
from specserve.calibration.table import Calibration
from specserve.check import Report, check_run
from specserve.config.policy import AcceptancePolicy, CostModelPolicy, PolicyConfig, SwitchingPolicy
from specserve.config.rules import tree_capacity
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.errors import ConfigError, Problem
from specserve.plan.cuda_graphs import choose_batch_sizes, verify_limit
from specserve.plan.execution import choose_device
from specserve.plan.notes import Notes
from specserve.plan.speculation import choose_num_draft_tokens
from specserve.policy.build import make_policy
from specserve.replay.acceptance_flag import read_acceptance
from specserve.replay.arrival import Arrival, arrivals
from specserve.replay.candidates import refuse_other_trees
from specserve.replay.costs import Costs
from specserve.rule_ids import RuleId

_NO_LIMIT = 1_000_000  # more requests than any policy's limit


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStep:
    """What a depth means for the engine with the running decodes of the question.

    `graph_requests` is the captured batch that they are padded to; None if no graph holds them.
    """

    num_steps: int
    tokens_per_request: int
    tokens: int
    graph_requests: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthYield:
    """What a depth is expected to give at this load; `tokens_per_request` those of a round."""

    num_steps: int
    round_seconds: float
    tokens_per_request: float
    tokens_per_second: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """The policy's answers, coming from few requests and from many, and one step for each depth.

    `acceptance`, by position, is None if nobody knows it; without a calibration `yields` is empty.
    """

    report: Report
    running_decodes: int
    acceptance: tuple[float, ...] | None
    calibration: Calibration | None
    graph_sizes: tuple[int, ...]
    arrivals: tuple[Arrival, ...]
    steps: tuple[EngineStep, ...]
    yields: tuple[DepthYield, ...]


def explain(
    overrides: Sequence[str],
    config_dirs: Sequence[Path],
    *,
    running_decodes: int,
    acceptance: str | None,
    calibration_file: Path | None,
    facts_file: Path | None,
) -> Explanation:
    """Check the run as `specserve check` does, and ask its policy.

    `acceptance` as typed: see `read_acceptance`. Raises ConfigError.
    """
    report = check_run(overrides, config_dirs, facts_file)
    config, built = report.config, _built(report.config)
    own = _own_calibration(config.policy)
    calibration = own
    if calibration_file is not None:
        calibration = read_calibration(str(calibration_file), key="--calibration")
    if calibration is not None:
        refuse_other_trees(config, calibration)
    seen = _acceptance(acceptance, calibration, built)
    if seen is None and isinstance(config.policy, AcceptancePolicy):
        raise ConfigError([_acceptance_decides()])
    graph_sizes = _graph_sizes(report)
    answers = arrivals(
        partial(make_policy, _without_exploring(config.policy), built, own),
        running_decodes,
        others=(1, _load_above(config, running_decodes)),
        acceptance=seen,
        dwell=config.policy.min_dwell_rounds if isinstance(config.policy, SwitchingPolicy) else 0,
    )
    depths = dict.fromkeys(answer.decision.num_steps for answer in answers)
    return Explanation(
        report=report,
        running_decodes=running_decodes,
        acceptance=seen,
        calibration=calibration,
        graph_sizes=graph_sizes,
        arrivals=tuple(answers),
        steps=tuple(_step(config, depth, running_decodes, graph_sizes) for depth in depths),
        yields=_yields(calibration, built, running_decodes, seen),
    )


def _built(config: RunConfig) -> int:
    speculation = config.speculation
    return speculation.num_steps if isinstance(speculation, Eagle3Speculation) else 0


def _load_above(config: RunConfig, running_decodes: int) -> int:
    """More than is asked about, and more than any limit above which the policy never speculates."""
    limit = verify_limit(config.policy, _NO_LIMIT)
    least = max(running_decodes, config.scheduler.max_running_requests)
    return least if limit == _NO_LIMIT else max(least, limit + 1)


def _own_calibration(policy: PolicyConfig) -> Calibration | None:
    return read_calibration(policy.calibration) if isinstance(policy, CostModelPolicy) else None


def _acceptance(
    typed: str | None, calibration: Calibration | None, positions: int
) -> tuple[float, ...] | None:
    """For every draft token of the deepest round; a calibration may know fewer."""
    if typed is not None:
        return read_acceptance("acceptance", typed, positions)
    return calibration.acceptance[:positions] if calibration is not None else None


def _without_exploring(policy: PolicyConfig) -> PolicyConfig:
    """A look now and then is no answer to what the policy does."""
    if isinstance(policy, AcceptancePolicy | CostModelPolicy):
        return policy.model_copy(update={"explore_every_rounds": 0})
    return policy


def _graph_sizes(report: Report) -> tuple[int, ...]:
    """The plan's; without the checkpoints no plan is made, but the sizes do not depend on them."""
    if report.plan is not None:
        return report.plan.cuda_graph_batch_sizes
    device = choose_device(report.config, report.facts, Notes())
    return choose_batch_sizes(report.config, device, Notes())


def _step(
    config: RunConfig, num_steps: int, running_decodes: int, graph_sizes: Sequence[int]
) -> EngineStep:
    speculation = config.speculation
    per_request = 1
    if num_steps and isinstance(speculation, Eagle3Speculation):
        most = choose_num_draft_tokens(speculation, Notes())
        per_request = min(most, tree_capacity(num_steps, speculation.topk))
    return EngineStep(
        num_steps=num_steps,
        tokens_per_request=per_request,
        tokens=running_decodes * per_request,
        graph_requests=min((n for n in graph_sizes if n >= running_decodes), default=None),
    )


def _yields(
    calibration: Calibration | None,
    built: int,
    running_decodes: int,
    acceptance: Sequence[float] | None,
) -> tuple[DepthYield, ...]:
    if calibration is None or acceptance is None:
        return ()
    rounds = Costs(calibration, built).rounds(running_decodes, acceptance)
    return tuple(
        DepthYield(
            num_steps=depth,
            round_seconds=one.seconds,
            tokens_per_request=one.tokens / running_decodes,
            tokens_per_second=one.rate,
        )
        for depth, one in rounds.items()
    )


def _acceptance_decides() -> Problem:
    return Problem(
        rule=RuleId.WRONG_ARGUMENT,
        key="acceptance",
        value=None,
        expected="a chance from 0 to 1: policy.kind=acceptance decides by it",
        fix="set acceptance=0.6, or give --calibration FILE",
    )
