"""The rulebook: what every rule is about, by its id."""

from collections.abc import Mapping
from types import MappingProxyType

from specserve.rule_ids import RuleId
from specserve.rulebook import (
    command_line,
    composition,
    draft,
    machine,
    other_commands,
    policies,
    sections,
    sglang,
    target,
    values,
)
from specserve.rulebook.rule import Rule, Severity

__all__ = ["RULEBOOK", "Rule", "Severity"]

RULEBOOK: Mapping[RuleId, Rule] = MappingProxyType(
    {
        rule.id: rule
        for kind in (
            command_line,
            composition,
            values,
            sections,
            policies,
            target,
            draft,
            machine,
            sglang,
            other_commands,
        )
        for rule in kind.RULES
    }
)
