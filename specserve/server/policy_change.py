"""The body of PUT /v1/policy: a whole policy, some fields, a pin, or a return to the run's own."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, assert_never

from pydantic import ValidationError

from specserve.config.policy import AlwaysPolicy, OffPolicy, PolicyConfig
from specserve.config.problems import problems_of
from specserve.config.strict import StrictModel
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

PinnedTo = Literal["on", "off"]
"""on: always at the deepest built depth; off: plain decoding. Either way whatever the load."""

_PINS: Mapping[PinnedTo, PolicyConfig] = {
    "on": AlwaysPolicy(kind="always"),
    "off": OffPolicy(kind="off"),
}


@dataclass(frozen=True, slots=True)
class Whole:
    """A policy with its kind: nothing of the one in force stays."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Fields:
    """Some fields of the policy in force; the others stay."""

    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Pin:
    """Speculation on or off until the next change, whatever the load."""

    to: PinnedTo


@dataclass(frozen=True, slots=True)
class Revert:
    """Back to the policy that the run was started with."""


Change = Whole | Fields | Pin | Revert


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a change asks the engine for."""

    policy: PolicyConfig
    pinned: PinnedTo | None


def parse_change(body: Mapping[str, Any]) -> Change:
    """The change that `body` asks for. Raises ConfigError if it is none, or two at once."""
    alone = next((name for name in ("pin", "revert") if name in body), None)
    if alone and len(body) > 1:
        raise ConfigError([_not_alone(alone, body)])
    match body:
        case {"pin": "on" | "off" as to}:
            return Pin(to)
        case {"pin": value}:
            raise ConfigError([_wrong_pin(value)])
        case {"revert": True}:
            return Revert()
        case {"revert": value}:
            raise ConfigError([_wrong_revert(value)])
        case {"kind": _}:
            return Whole(body)
        case _:
            return Fields(body)


def outcome(change: Change, in_force: PolicyConfig, own: PolicyConfig) -> Outcome:
    """The policy that `change` leads to from `in_force`; `own` is the run's.

    Raises ConfigError with every problem, in the words in which a start with this policy would.
    """
    match change:
        case Whole(fields=fields):
            return Outcome(_parsed(fields), None)
        case Fields(fields=fields) if not fields:
            raise ConfigError([_nothing_asked()])
        case Fields(fields=fields):
            return Outcome(_parsed(_merged(in_force.model_dump(mode="json"), fields)), None)
        case Pin(to=to):
            return Outcome(_PINS[to], to)
        case Revert():
            return Outcome(own, None)
        case _:
            assert_never(change)


class _PolicySection(StrictModel):
    """The one section of a configuration that may change while it runs."""

    policy: PolicyConfig


def _parsed(fields: Mapping[str, Any]) -> PolicyConfig:
    tree = {"policy": fields}
    try:
        return _PolicySection.model_validate(tree).policy
    except ValidationError as error:
        raise ConfigError(problems_of(error, tree)) from error


def _merged(old: Mapping[str, Any], new: Mapping[str, Any]) -> dict[str, Any]:
    """Sections are merged key by key; everything else, lists and nulls too, replaces the old."""
    merged = {**old, **new}
    for name, value in new.items():
        before = old.get(name)
        if isinstance(value, Mapping) and isinstance(before, Mapping):
            merged[name] = _merged(before, value)
    return merged


def _not_alone(name: str, body: Mapping[str, Any]) -> Problem:
    others = ", ".join(other for other in body if other != name)
    return Problem(
        rule=RuleId.POLICY_CHANGE,
        key=name,
        value=body[name],
        expected="to stand alone: it replaces the whole policy",
        fix=f"leave out {others}, or leave out {name}",
    )


def _wrong_pin(value: object) -> Problem:
    return Problem(
        rule=RuleId.POLICY_CHANGE,
        key="pin",
        value=value,
        expected='"on" or "off", in quotes',
        fix='send {"pin": "on"} or {"pin": "off"}; {"revert": true} ends a pin',
    )


def _wrong_revert(value: object) -> Problem:
    return Problem(
        rule=RuleId.POLICY_CHANGE,
        key="revert",
        value=value,
        expected="true",
        fix='send {"revert": true}',
    )


def _nothing_asked() -> Problem:
    return Problem(
        rule=RuleId.POLICY_CHANGE,
        key="policy",
        value=None,
        expected="a whole policy (with its kind), some fields of the one in force, pin, or revert",
        fix='send for example {"pin": "off"}',
    )
