"""The load that the flags of a replay ask for: recorded or made up."""

from argparse import Namespace
from collections.abc import Iterator, Sequence

from specserve.calibration.table import Calibration
from specserve.config.policy import BatchThresholdPolicy, DepthSchedulePolicy, PolicyConfig
from specserve.errors import ConfigError, Problem
from specserve.replay.acceptance_flag import read_acceptance
from specserve.replay.costs import Costs, best_depth
from specserve.replay.generators import Shape, default_period, generate
from specserve.replay.read import read_trace
from specserve.replay.trace import Trace, with_acceptance
from specserve.rule_ids import RuleId

_SECONDS = 60.0
_SHAPE_FLAGS = ("low", "high", "seconds", "period")
_MOST_PERIODS = 1000


def choose_load(
    args: Namespace, policies: Sequence[PolicyConfig], calibration: Calibration, costs: Costs
) -> Trace:
    """The trace, with acceptance for every depth of `costs`. Raises ConfigError.

    If nothing else is asked for, a sawtooth goes about the first threshold of `policies`, or if
    they have none, about the batch size from which on another depth is best.
    """
    positions = max(costs.depths)
    measured = calibration.acceptance[:positions]
    given = args.acceptance
    acceptance = measured if given is None else read_acceptance("--acceptance", given, positions)
    if args.trace is not None:
        trace = read_trace(args.trace, positions, measured)
        return trace if given is None else with_acceptance(trace, acceptance)
    low, high = 1, calibration.batch_sizes[-1]
    if args.generate == "sawtooth":
        thresholds = (_threshold(policy) for policy in policies)
        middle = next(filter(None, thresholds), None) or _break_even(high, costs, acceptance)
        extent = max(middle // 5, 2)
        low, high = max(middle - extent, 1), middle + extent
    return generate(_shape(args, low, high), acceptance)


def flag_problems(args: Namespace) -> Iterator[Problem]:
    """Flags that contradict each other."""
    if (args.trace is None) == (args.generate is None):
        yield Problem(
            rule=RuleId.WRONG_FLAG,
            key="--trace",
            value=None if args.trace is None else str(args.trace),
            expected="either a recorded load or --generate",
            fix="use --trace FILE, or --generate ramp",
        )
    if args.calibration is None:
        yield Problem(
            rule=RuleId.WRONG_FLAG,
            key="--calibration",
            value=None,
            expected="the file with the round times of every depth",
            fix="use --calibration FILE, as `specserve calibrate` writes it",
        )
    for name in _SHAPE_FLAGS if args.generate is None else ():
        if getattr(args, name) is not None:
            yield Problem(
                rule=RuleId.WRONG_FLAG,
                key=f"--{name}",
                value=getattr(args, name),
                expected="--generate beside it: a recorded load is taken as it is",
                fix=f"leave out --{name}, or use --generate in place of --trace",
            )


def _shape(args: Namespace, low: int, high: int) -> Shape:
    """`low` and `high` are for who does not say."""
    low = low if args.low is None else args.low
    seconds = _SECONDS if args.seconds is None else args.seconds
    shape = Shape(
        name=args.generate,
        low=low,
        high=max(high, low + 1) if args.high is None else args.high,
        seconds=seconds,
        period=default_period(args.generate, seconds) if args.period is None else args.period,
        seed=args.seed,
    )
    problems = list(_shape_problems(shape))
    if problems:
        raise ConfigError(problems)
    return shape


def _threshold(policy: PolicyConfig) -> int | None:
    """Most running decodes with which a policy of fixed thresholds speculates."""
    match policy:
        case BatchThresholdPolicy():
            return policy.disable_above
        case DepthSchedulePolicy():
            return max(step.up_to for step in policy.schedule if step.num_steps)
        case _:
            return None


def _break_even(largest: int, costs: Costs, acceptance: Sequence[float]) -> int:
    """The least batch that is best with another depth than a single request, else `largest`."""

    def best(running: int) -> int:
        return best_depth(costs.rounds(running, acceptance))

    return next((n for n in range(1, largest + 1) if best(n) != best(1)), largest)


def _shape_problems(shape: Shape) -> Iterator[Problem]:
    if shape.low < 0:
        yield Problem(
            rule=RuleId.WRONG_FLAG,
            key="--low",
            value=shape.low,
            expected="0 or more",
            fix="use --low 0",
        )
    if shape.high <= shape.low:
        yield Problem(
            rule=RuleId.WRONG_FLAG,
            key="--high",
            value=shape.high,
            expected=f"more than --low, {shape.low}",
            fix=f"use --high {shape.low + 1}",
        )
    if not 0 < shape.seconds < float("inf"):
        yield Problem(
            rule=RuleId.WRONG_FLAG,
            key="--seconds",
            value=shape.seconds,
            expected="more than 0",
            fix="use --seconds 60",
        )
    elif not shape.seconds / _MOST_PERIODS <= shape.period < float("inf"):
        yield Problem(
            rule=RuleId.WRONG_FLAG,
            key="--period",
            value=shape.period,
            expected=f"seconds, and no more than {_MOST_PERIODS} periods in --seconds "
            f"{shape.seconds:g}",
            fix=f"use --period {shape.seconds / _MOST_PERIODS:g}, or leave it out",
        )
