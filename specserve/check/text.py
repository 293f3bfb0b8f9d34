"""A survey for people: the verdict first, then what is wrong, then what is worth knowing."""

from collections.abc import Iterator

from specserve.check.survey import Finding, Outcome, Survey
from specserve.errors import Problem
from specserve.origin.places import place
from specserve.rulebook import RULEBOOK


def survey_text(survey: Survey) -> str:
    """One block for each subject of which there is something to tell."""
    return "\n".join(_lines(survey))


def _lines(survey: Survey) -> Iterator[str]:
    yield _verdict(survey)
    for outcome in survey.failed:
        yield f"  failed        {outcome.words} ({place(outcome.file)})"
        yield from _findings(outcome.findings)
    for outcome in survey.experiments:
        if outcome.status != "failed":
            yield from _experiment(outcome)
    yield f"  ok            {sum(o.status == 'ok' for o in survey.options)} options of groups"
    yield from _findings(survey.files)


def _verdict(survey: Survey) -> str:
    checked = (
        f"{_counted(survey.experiments, 'experiment')} and {_counted(survey.options, 'option')}"
    )
    elsewhere = [o for o in survey.experiments if o.status == "elsewhere"]
    more = f"; {len(elsewhere)} can't be planned here" if elsewhere else ""
    if survey.failed:
        names = ", ".join(outcome.words for outcome in survey.failed)
        return f"FAILED: {checked} checked, {len(survey.failed)} failed: {names}{more}"
    return f"OK: {checked} checked{more}"


def _experiment(outcome: Outcome) -> Iterator[str]:
    if outcome.elsewhere is not None:
        yield (
            f"  not here      {outcome.words}: can't be planned here: {outcome.elsewhere}; "
            "give --facts FILE of a machine that can"
        )
    elif outcome.report is not None and outcome.report.missing:
        absent = ", ".join(str(problem.value) for problem in outcome.report.missing)
        yield f"  ok            {outcome.words}, without what needs the checkpoints: {absent}"
    else:
        yield f"  ok            {outcome.words}"
    yield from _findings(outcome.findings)


def _findings(findings: tuple[Finding, ...]) -> Iterator[str]:
    for finding in findings:
        severity = RULEBOOK[finding.told.rule].severity
        label = "" if isinstance(finding.told, Problem) else f"{severity}: "
        yield f"    {finding.place}: {label}{finding.told}"


def _counted(outcomes: tuple[Outcome, ...], noun: str) -> str:
    return f"{len(outcomes)} {noun}{'' if len(outcomes) == 1 else 's'}"
