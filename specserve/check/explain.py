"""`specserve check --explain`: the rulebook, read aloud."""

from textwrap import fill
from typing import Any

from specserve.config.keys import nearest
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId
from specserve.rulebook import RULEBOOK, Rule
from specserve.sglang_engine.table import ROWS
from specserve.sglang_engine.versions import Row

_WIDTH = 100


def explain_rule(asked: str) -> str:
    """What the rule `asked` (SPEC301, spec301 or 301) is about. Raises ConfigError for no rule."""
    name = asked.upper().removeprefix("SPEC")
    rule = next((rule for rule in RULEBOOK.values() if rule.id == f"SPEC{name}"), None)
    if rule is None:
        raise ConfigError([_unknown(asked)])
    return _text(rule)


def list_rules() -> str:
    """One line for each rule."""
    return "\n".join(
        f"{rule.id}  {rule.severity:7}  {rule.title}"
        for rule in sorted(RULEBOOK.values(), key=lambda rule: rule.id)
    )


def _text(rule: Rule) -> str:
    severity = {"error": "error: refused", "warning": "warning", "danger": "danger: not refused"}
    parts = [
        ("what", rule.what),
        ("why", rule.why),
        ("fix", rule.fix),
        ("example", rule.example),
        *(("versions", _releases(ROWS[name])) for name in rule.versions),
    ]
    lines = [
        fill(text, _WIDTH, initial_indent=f"  {label:10}", subsequent_indent=" " * 12)
        for label, text in parts
    ]
    return "\n".join(
        [f"{rule.id}  {rule.title}", f"  {'severity':10}{severity[rule.severity]}", *lines]
    )


def _releases(row: Row[Any]) -> str:
    """SGLang's table for one fact."""
    spans = [f"{span.since} to {span.until}: {_plain(span.value)}" for span in row.spans]
    return f"{row.meaning}. SGLang {'; '.join(spans)}"


def _plain(value: object) -> str:
    if isinstance(value, frozenset | tuple):
        return ", ".join(sorted(map(str, value))) or "none"
    return (
        {True: "yes", False: "no"}.get(value, str(value)) if isinstance(value, bool) else str(value)
    )


def _unknown(asked: str) -> Problem:
    by_name = {name.lower(): str(rule) for rule in RULEBOOK for name in (rule, rule.name)}
    near = nearest(asked, list(by_name))
    return Problem(
        rule=RuleId.UNKNOWN_RULE,
        key="--explain",
        value=asked,
        expected="the id of a rule, SPEC and three digits",
        fix=f"use --explain {by_name[near]}"
        if near
        else "use --explain without an id for the list",
    )
