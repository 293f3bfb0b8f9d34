"""A check as JSON values."""

from collections.abc import Iterable
from typing import Any

from specserve.check.run import Report
from specserve.check.survey import Finding, Outcome, Survey
from specserve.errors import Doubt, Problem
from specserve.rulebook import RULEBOOK


def survey_document(survey: Survey) -> dict[str, Any]:
    """`verdict` is "failed" if any outcome is."""
    outcomes = (*survey.experiments, *survey.options)
    return {
        "verdict": "failed" if survey.failed else "ok",
        "checked": {"experiments": len(survey.experiments), "options": len(survey.options)},
        "outcomes": [_outcome(outcome) for outcome in outcomes],
        "files": [_finding(finding) for finding in survey.files],
    }


def report_document(report: Report) -> dict[str, Any]:
    """A run that passed."""
    return {
        "verdict": "ok",
        "planned_for": report.facts.source,
        "missing": [_told(problem) for problem in report.missing],
        "warnings": [_told(doubt) for doubt in report.warnings],
        "adjustments": [change.model_dump(mode="json") for change in report.adjustments],
        "plan": None if report.plan is None else report.plan.model_dump(mode="json"),
    }


def refusal_document(problems: Iterable[Problem]) -> dict[str, Any]:
    """A run that did not."""
    return {"verdict": "failed", "problems": [_told(problem) for problem in problems]}


def _outcome(outcome: Outcome) -> dict[str, Any]:
    missing = outcome.report.missing if outcome.report else ()
    return {
        "words": outcome.words,
        "file": str(outcome.file),
        "status": outcome.status,
        "reason": outcome.elsewhere,
        "missing": [_told(problem) for problem in missing],
        "findings": [_finding(finding) for finding in outcome.findings],
    }


def _finding(finding: Finding) -> dict[str, Any]:
    where = {"file": str(finding.place.file), "line": finding.place.line}
    return {**_told(finding.told), **where}


def _told(told: Problem | Doubt) -> dict[str, Any]:
    head = {"rule": told.rule, "severity": RULEBOOK[told.rule].severity, "key": told.key}
    if isinstance(told, Doubt):
        return {**head, "text": told.text}
    return {**head, "value": told.value, "expected": told.expected, "fix": told.fix}
