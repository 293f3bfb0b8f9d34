"""The policies that a replay compares, from overrides in Hydra's grammar."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from specserve.calibration.read import read_calibration
from specserve.calibration.table import Calibration
from specserve.config.compose import compose_run, compose_tree
from specserve.config.keys import field_at
from specserve.config.load import load_run
from specserve.config.policy import CostModelPolicy
from specserve.config.quote import override
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.config.sweep import SweptRun, expand_sweeps
from specserve.errors import ConfigError, Problem
from specserve.policy.build import make_policy
from specserve.policy.observation import Policy
from specserve.rule_ids import RuleId

_CALIBRATION = "policy.calibration"


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One policy to be replayed: what tells it from the others, and the run that it belongs to."""

    name: str
    overrides: tuple[str, ...]
    config: RunConfig
    calibration: Calibration | None

    @property
    def num_steps(self) -> int:
        """The deepest round that the run builds; 0 without speculation."""
        speculation = self.config.speculation
        return speculation.num_steps if isinstance(speculation, Eagle3Speculation) else 0

    def policy(self) -> Policy:
        """A fresh policy. Raises ConfigError if it lacks a calibration."""
        return make_policy(self.config.policy, self.num_steps, self.calibration)


def read_candidates(
    overrides: Sequence[str], config_dirs: Sequence[Path], path: Path, calibration: Calibration
) -> list[Candidate]:
    """One candidate for each combination of the swept values.

    If several policies are swept, a key of one of them (policy.disable_above=40) is for those that
    have it. If the overrides choose neither an experiment nor a speculation, it is the one that
    was calibrated; a cost_model that names no calibration decides by the same file, `path`.
    Raises ConfigError with all problems.
    """
    runs = expand_sweeps([*_calibrated_speculation(overrides, calibration), *overrides])
    if any(text.startswith("policy=") for text in runs[0].chosen):
        runs = _distributed(runs, config_dirs)
    problems: dict[str, Problem] = {}
    candidates = []
    for run in runs:
        try:
            candidates.append(_candidate(run, config_dirs, path, calibration))
        except ConfigError as error:
            # Runs of a sweep share most overrides: what is wrong with them is said once.
            problems |= {str(problem): problem for problem in error.problems}
    if problems:
        raise ConfigError(list(problems.values()))
    return candidates


def _calibrated_speculation(overrides: Sequence[str], calibration: Calibration) -> list[str]:
    deepest = calibration.depths[-1].num_steps
    chosen = [text.lstrip("+").startswith(("speculation=", "experiment=")) for text in overrides]
    if any(chosen) or deepest == 0:
        return []
    return [
        "speculation=eagle3_topk1",
        override("speculation.topk", calibration.topk),
        override("speculation.num_steps", deepest),
    ]


def _distributed(runs: Sequence[SweptRun], config_dirs: Sequence[Path]) -> list[SweptRun]:
    """The runs without the policy keys that only other policies of the sweep have."""
    options = dict.fromkeys(text for run in runs for text in run.chosen if _is_policy(text))
    kinds = {option: _kind(option, config_dirs) for option in options}
    kept: dict[tuple[str, ...], SweptRun] = {}
    for run in runs:
        kind = kinds[next(text for text in run.chosen if _is_policy(text))]
        foreign = {
            text
            for text in run.overrides
            if not _has(kind, text) and any(_has(other, text) for other in kinds.values())
        }
        texts = tuple(text for text in run.overrides if text not in foreign)
        chosen = tuple(text for text in run.chosen if text not in foreign)
        kept.setdefault(texts, SweptRun(texts, chosen))
    return list(kept.values())


def _is_policy(text: str) -> bool:
    return text.startswith("policy=")


def _has(kind: object, text: str) -> bool:
    """False for a key of section policy that this kind lacks; True for all other overrides."""
    key = text.partition("=")[0].lstrip("+")
    if not key.startswith("policy."):
        return True
    return field_at(key.split("."), {"policy": {"kind": kind}}) is not None


def _kind(option: str, config_dirs: Sequence[Path]) -> object:
    """The kind of policy that an option such as `policy=mine` is; its values may be missing."""
    tree = compose_tree([option, override(_CALIBRATION, "unread")], config_dirs)
    section = tree["policy"]
    return section.get("kind") if isinstance(section, Mapping) else None


def _candidate(
    run: SweptRun, config_dirs: Sequence[Path], path: Path, calibration: Calibration
) -> Candidate:
    overrides = run.overrides
    if _lacks_calibration(overrides, config_dirs):
        overrides = (*overrides, override(_CALIBRATION, str(path)))
    config = load_run(overrides, config_dirs).config
    own = None
    if isinstance(config.policy, CostModelPolicy):
        own = read_calibration(config.policy.calibration)
    refuse_other_trees(config, calibration)
    names = [text.removeprefix("policy=").removeprefix("policy.") for text in run.chosen]
    return Candidate(
        name=" ".join(names) or config.policy.kind,
        overrides=overrides,
        config=config,
        calibration=own,
    )


def _lacks_calibration(overrides: Sequence[str], config_dirs: Sequence[Path]) -> bool:
    """Whether the composed policy has a calibration that is still to be named."""
    try:
        compose_run(overrides, config_dirs)
    except ConfigError as error:
        return any(p.key == _CALIBRATION and p.value == "???" for p in error.problems)
    return False


def refuse_other_trees(config: RunConfig, calibration: Calibration) -> None:
    """Round times of a chain say nothing about a tree."""
    speculation = config.speculation
    if isinstance(speculation, Eagle3Speculation) and speculation.topk != calibration.topk:
        raise ConfigError(
            [
                Problem(
                    rule=RuleId.CALIBRATION_OF_ANOTHER_TREE,
                    key="speculation.topk",
                    value=speculation.topk,
                    expected=f"{calibration.topk}, with which --calibration was measured",
                    fix=f"set speculation.topk={calibration.topk}, or calibrate this topk",
                )
            ]
        )
