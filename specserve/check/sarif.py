"""A check as SARIF 2.1.0, which code hosts show beside the lines of a change."""

from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

from specserve import __version__
from specserve.check.survey import Finding
from specserve.errors import Doubt, Problem
from specserve.rule_ids import RuleId
from specserve.rulebook import RULEBOOK, Rule

_SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)
_LEVELS = {"error": "error", "danger": "warning", "warning": "note"}


def sarif_log(findings: Iterable[Finding]) -> dict[str, Any]:
    """One run with one result for each finding; what two runs have from one line is told once."""
    told = list(dict.fromkeys(map(_told, findings)))
    rules = sorted({rule for rule, *_ in told})
    return {
        "$schema": _SCHEMA,
        "version": "2.1.0",
        "runs": [
            {
                "tool": {
                    "driver": {
                        "name": "specserve",
                        "version": __version__,
                        "rules": [_rule(RULEBOOK[rule]) for rule in rules],
                    }
                },
                "columnKind": "unicodeCodePoints",
                "results": [_result(rules, *one) for one in told],
            }
        ],
    }


def _told(finding: Finding) -> tuple[RuleId, str, str, int]:
    place = finding.place
    return finding.told.rule, _message(finding.told), _uri(place.file), place.line


def _rule(rule: Rule) -> dict[str, Any]:
    return {
        "id": rule.id,
        "name": rule.id.name,
        "shortDescription": {"text": rule.title},
        "fullDescription": {"text": f"{rule.what} {rule.why}"},
        "help": {"text": f"{rule.fix} Example: {rule.example}"},
        "defaultConfiguration": {"level": _LEVELS[rule.severity]},
    }


def _result(
    rules: Sequence[RuleId], rule: RuleId, text: str, uri: str, line: int
) -> dict[str, Any]:
    return {
        "ruleId": rule,
        "ruleIndex": rules.index(rule),
        "level": _LEVELS[RULEBOOK[rule].severity],
        "message": {"text": text},
        "locations": [
            {
                "physicalLocation": {
                    "artifactLocation": {"uri": uri},
                    "region": {"startLine": line},
                }
            }
        ],
    }


def _message(told: Problem | Doubt) -> str:
    if isinstance(told, Problem):
        return f"{told.key}={told.value!r}: expected {told.expected}. Fix: {told.fix}."
    return told.text


def _uri(file: Path) -> str:
    """Relative to the current directory, the root of a checkout, if it lies below it."""
    here = Path.cwd()
    if file.is_relative_to(here):
        return quote(file.relative_to(here).as_posix())
    return file.as_uri()
