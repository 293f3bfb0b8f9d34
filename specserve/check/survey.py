"""Check everything: each experiment as a run, and each option of each group on its own."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specserve.check.catalogue import Catalogue, Option, find_catalogue
from specserve.check.machine import PlanningMachine
from specserve.check.options import check_options
from specserve.check.place import Place, place_of
from specserve.check.run import Report, report_on
from specserve.config.load import load_run
from specserve.config.quote import override
from specserve.config.run import RunConfig
from specserve.config.warnings import config_warnings
from specserve.errors import ConfigError, Doubt, Problem
from specserve.plan.execution import gpus_per_node
from specserve.rule_ids import RuleId

Status = Literal["ok", "failed", "elsewhere"]

_OF_THIS_MACHINE = "SPEC7"  # the kind of rules that another machine may satisfy


@dataclass(frozen=True, slots=True)
class Finding:
    """A problem or a doubt, and where the key is written that it is about."""

    told: Problem | Doubt
    place: Place


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one subject came to.

    `elsewhere`: valid, but this machine cannot plan it, for the reason that `elsewhere` holds.
    `report` is that of a run that was planned or lacks only its checkpoints.
    """

    words: str
    file: Path
    status: Status
    findings: tuple[Finding, ...]
    elsewhere: str | None
    report: Report | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Survey:
    """Everything that was checked; `files` are doubts about files that never count."""

    experiments: tuple[Outcome, ...]
    options: tuple[Outcome, ...]
    files: tuple[Finding, ...]

    @property
    def failed(self) -> tuple[Outcome, ...]:
        """Those with problems; the check as a whole is sound if there are none."""
        return tuple(o for o in (*self.experiments, *self.options) if o.status == "failed")


def survey(
    overrides: Sequence[str], config_dirs: Sequence[Path], facts_file: Path | None
) -> Survey:
    """Every experiment with the `overrides`, and every option, in conf/ and in `config_dirs`.

    With a `facts_file` runs are planned for its machine, and what that machine cannot do is a
    problem. Without, they are planned for this one, and what it cannot do is no fault of the
    configuration. Raises ConfigError for folders or facts that are not there.
    """
    catalogue = find_catalogue(config_dirs)
    machine = PlanningMachine(facts_file)
    experiments = [o for o in catalogue.options if o.is_experiment]
    others = [o for o in catalogue.options if not o.is_experiment]
    return Survey(
        experiments=tuple(
            _check_experiment(one, overrides, config_dirs, catalogue, machine)
            for one in experiments
        ),
        options=tuple(
            _option_outcome(option, problems, catalogue)
            for option, problems in check_options(others, config_dirs)
        ),
        files=tuple(Finding(doubt, Place(file, 1)) for file, doubt in catalogue.doubts),
    )


def _check_experiment(
    option: Option,
    overrides: Sequence[str],
    config_dirs: Sequence[Path],
    catalogue: Catalogue,
    machine: PlanningMachine,
) -> Outcome:
    words = override(f"+{option.group}", option.name)
    try:
        config = load_run([words, *overrides], config_dirs).config
    except ConfigError as error:
        return _failed(words, option, error.problems, catalogue)
    try:
        report = report_on(config, machine.facts_of(config))
    except ConfigError as error:
        elsewhere = _why_elsewhere(error.problems, config, machine)
        if elsewhere is None:
            return _failed(words, option, error.problems, catalogue)
        return Outcome(
            words=words,
            file=option.file,
            status="elsewhere",
            findings=_findings(config_warnings(config), option, catalogue),
            elsewhere=elsewhere,
            report=None,
        )
    return Outcome(
        words=words,
        file=option.file,
        status="ok",
        findings=_findings(report.warnings, option, catalogue),
        elsewhere=None,
        report=report,
    )


def _option_outcome(option: Option, problems: Sequence[Problem], catalogue: Catalogue) -> Outcome:
    words = override(option.group, option.name)
    if problems:
        return _failed(words, option, problems, catalogue)
    return Outcome(
        words=words, file=option.file, status="ok", findings=(), elsewhere=None, report=None
    )


def _failed(
    words: str, option: Option, problems: Sequence[Problem], catalogue: Catalogue
) -> Outcome:
    return Outcome(
        words=words,
        file=option.file,
        status="failed",
        findings=_findings(problems, option, catalogue),
        elsewhere=None,
        report=None,
    )


def _findings(
    told: Iterable[Problem | Doubt], option: Option, catalogue: Catalogue
) -> tuple[Finding, ...]:
    return tuple(Finding(one, place_of(one.key, option, catalogue)) for one in told)


def _why_elsewhere(
    problems: Sequence[Problem], config: RunConfig, machine: PlanningMachine
) -> str | None:
    """Why the run is for another machine than this one; None if something else is wrong too."""
    if not machine.is_here or not all(p.rule.startswith(_OF_THIS_MACHINE) for p in problems):
        return None
    first = problems[0]
    if first.rule is RuleId.TOO_FEW_GPUS:
        return f"needs {gpus_per_node(config)} GPUs, this machine has {machine.num_gpus}"
    return f"{first.key}={first.value}: expected {first.expected}"
