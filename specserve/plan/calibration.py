"""The calibration that a cost_model decides by: read, and checked against the run."""

from collections.abc import Iterator

from specserve.calibration.read import KEY, read_calibration
from specserve.calibration.table import Calibration
from specserve.config.policy import CostModelPolicy
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.errors import ConfigError, Doubt, Problem
from specserve.facts import Facts
from specserve.plan.notes import Notes
from specserve.rule_ids import RuleId


def choose_calibration(config: RunConfig, facts: Facts, notes: Notes) -> Calibration | None:
    """None without a cost_model. A file that does not fit the run is refused."""
    policy, speculation = config.policy, config.speculation
    if not isinstance(policy, CostModelPolicy) or not isinstance(speculation, Eagle3Speculation):
        return None
    try:
        calibration = read_calibration(policy.calibration)
    except ConfigError as error:
        notes.refuse(error.problems)
        return None
    notes.refuse(_misfits(policy.calibration, calibration, speculation))
    for doubt in _doubts(policy.calibration, calibration, config, facts):
        notes.warn(doubt)
    return calibration


def _misfits(
    path: str, calibration: Calibration, speculation: Eagle3Speculation
) -> Iterator[Problem]:
    other = f"set {KEY} to a file that `specserve calibrate` wrote for this run"
    if calibration.topk != speculation.topk:
        yield Problem(
            rule=RuleId.CALIBRATION_OF_ANOTHER_TREE,
            key=KEY,
            value=path,
            expected=f"round times of topk={speculation.topk} (speculation.topk), found those of "
            f"topk={calibration.topk}",
            fix=f"set speculation.topk={calibration.topk}, or {other}",
        )
    measured = [depth.num_steps for depth in calibration.depths]
    if not any(0 < depth <= speculation.num_steps for depth in measured):
        deeper = f"set speculation.num_steps={measured[1]}, or " if len(measured) > 1 else ""
        yield Problem(
            rule=RuleId.CALIBRATION_LACKS_DEPTHS,
            key=KEY,
            value=path,
            expected=f"round times of a depth from 1 to {speculation.num_steps} "
            f"(speculation.num_steps), found those of {measured}",
            fix=f"{deeper}{other}",
        )


def _doubts(
    path: str, calibration: Calibration, config: RunConfig, facts: Facts
) -> Iterator[Doubt]:
    """Where the figures come from another engine or another GPU than they are used for."""
    measured = calibration.provenance
    if measured.engine != config.engine.kind:
        yield Doubt(
            rule=RuleId.CALIBRATION_OF_ANOTHER_ENGINE,
            key=KEY,
            text=f"{KEY}={path} was measured with engine={measured.engine}, and this run has "
            f"engine={config.engine.kind}: its round times differ",
        )
    gpus = sorted({gpu.name for gpu in facts.machine.gpus})
    if gpus and measured.device not in gpus:
        yield Doubt(
            rule=RuleId.CALIBRATION_OF_ANOTHER_DEVICE,
            key=KEY,
            text=f"{KEY}={path} was measured on {measured.device}, and this run is planned for "
            f"{', '.join(gpus)}: its round times differ",
        )
