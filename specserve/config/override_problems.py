"""What is wrong with an override before anything is composed, and how to type it instead."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from pydantic.fields import FieldInfo

from specserve.config.describe import closest_option, expectation
from specserve.config.keys import field_at
from specserve.config.problems import BOOLEAN_HINT, SECRETS, secret_problem
from specserve.config.quote import quote
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.rule_ids import RuleId

_HEEDED = ("hydra.run.dir", "hydra.searchpath")
_KEY = re.compile(r"[+~]*[\w./@:-]+")


@dataclass(frozen=True, slots=True, kw_only=True)
class ParsedOverride:
    """An override as Hydra reads it: `sign` is "", "+", "++" or "~"; `value` is plain data.

    `options` are those of the group that `key` names; empty if the override sets a value.
    """

    text: str
    sign: str
    key: str
    value: Any
    is_sweep: bool
    options: tuple[str, ...]

    @property
    def raw_value(self) -> str:
        """What was typed on the right of the sign =."""
        return self.text.partition("=")[2]


@dataclass(frozen=True, slots=True)
class Flaw:
    """What is wrong with an override, and the override that was meant; None if that is open."""

    problem: Problem
    meant: str | None


def unreadable(text: str) -> Flaw:
    """For a text that Hydra's grammar refuses."""
    key, equals, value = text.partition("=")
    if not equals:
        problem = Problem(
            rule=RuleId.NOT_AN_OVERRIDE,
            key="override",
            value=text,
            expected="key=value, group=option or +experiment=NAME",
            fix=f"write it so, for example +experiment={text.lstrip('+')}",
        )
        return Flaw(problem, None)
    if not _KEY.fullmatch(key) or value == "???":
        problem = Problem(
            rule=RuleId.NOT_AN_OVERRIDE,
            key=key,
            value=value,
            expected="an override, key=value",
            fix="write key=value, with the dotted key on the left",
        )
        return Flaw(problem, None)
    problem = Problem(
        rule=RuleId.UNQUOTED_VALUE,
        key=key,
        value=_shown(key, value),
        expected="a value in Hydra's grammar, in which some characters need quotes",
        fix=f"type {_shell_quoted(key, value)}",
    )
    return Flaw(problem, f"{key}={quote(value)}")


def override_flaw(override: ParsedOverride) -> Flaw | None:
    """The first thing wrong with a readable override, taken on its own."""
    if override.key.startswith(("hydra.", "hydra/")) and override.key not in _HEEDED:
        return _unheeded(override)
    if override.is_sweep:
        return _sweep(override)
    if override.options:
        return _wrong_option(override) or _wrong_sign(override)
    return _number_for_text(override)


def _unheeded(override: ParsedOverride) -> Flaw:
    problem = Problem(
        rule=RuleId.HYDRA_SETTING,
        key=override.sign + override.key,
        value=override.raw_value,
        expected=f"{' or '.join(_HEEDED)}: a run heeds no other setting of Hydra's own",
        fix="remove it",
    )
    return Flaw(problem, None)


def _sweep(override: ParsedOverride) -> Flaw:
    key, value = override.sign + override.key, override.raw_value
    field = field_at(override.key.split("."), {})
    wanted = "" if field is None else expectation(field)
    first = f"{key}={value.partition(',')[0]}"
    meant: str | None
    if "(" in value:
        fix, meant = "give one value", None
    elif "list" in wanted:
        fix, meant = f"type '{key}=[{value}]'", f"{key}=[{value}]"
    elif "text" in wanted:
        fix, meant = f"type {_shell_quoted(key, value)}", f"{key}={quote(value)}"
    else:
        fix, meant = f"choose one, {first}", first
    problem = Problem(
        rule=RuleId.SEVERAL_VALUES,
        key=key,
        value=_shown(key, value),
        expected="one value: several are a sweep, which this version does not run",
        fix=fix,
    )
    return Flaw(problem, meant)


def _wrong_option(override: ParsedOverride) -> Flaw | None:
    options = override.options
    chosen: Sequence[Any] = override.value if isinstance(override.value, list) else [override.value]
    wrong = [name for name in chosen if name not in options]
    if not wrong:
        return None
    near = closest_option(options, wrong[0])
    hint = f" ({BOOLEAN_HINT})" if isinstance(wrong[0], bool) else ""
    key = _right_sign(override.key) + override.key
    problem = Problem(
        rule=RuleId.UNKNOWN_OPTION,
        key=override.key,
        value=wrong[0],
        expected=f"one of {', '.join(options)}{hint}",
        fix=f"choose {key}={near or _harmless(options)}",
    )
    return Flaw(problem, f"{key}={near}" if near else None)


def _harmless(options: Sequence[str]) -> str:
    return next((option for option in options if option in ("none", "off")), options[0])


def _wrong_sign(override: ParsedOverride) -> Flaw | None:
    right = _right_sign(override.key)
    if override.sign == right:
        return None
    where = "not in" if right else "already in"
    meant = f"{right}{override.key}={override.raw_value}"
    problem = Problem(
        rule=RuleId.WRONG_SIGN,
        key=override.sign + override.key,
        value=override.value,
        expected=f"{right}{override.key}, because the group is {where} the defaults list",
        fix=f"choose {meant}",
    )
    return Flaw(problem, meant)


def _number_for_text(override: ParsedOverride) -> Flaw | None:
    """A name such as 1e10 would become another text once it is a number: keep what was typed."""
    field = field_at(override.key.split("."), {})
    if not isinstance(override.value, int | float) or field is None or not _only_text(field):
        return None
    key, raw = override.sign + override.key, override.raw_value
    if override.key in SECRETS:
        problem = secret_problem(override.key, field)
    else:
        problem = Problem(
            rule=RuleId.NUMBER_FOR_TEXT,
            key=key,
            value=raw,
            expected=f"{expectation(field)}, in quotes because it reads as {_kind(override.value)}",
            fix=f"type {_shell_quoted(key, raw)}",
        )
    return Flaw(problem, f"{key}={quote(raw)}")


def _right_sign(group: str) -> str:
    return "" if group in RunConfig.model_fields or group.startswith("hydra/") else "+"


def _only_text(field: FieldInfo) -> bool:
    return expectation(field).startswith("text")


def _kind(value: float) -> str:
    return "a boolean" if isinstance(value, bool) else "a number"


def _shown(key: str, value: str) -> str:
    return "(hidden)" if key.lstrip("+~") in SECRETS else value


def _shell_quoted(key: str, value: str) -> str:
    """`key="value"` as typed into a shell."""
    text = f"{key}={quote(value)}"
    return f"'{text}'" if "'" not in text else "'" + text.replace("'", "'\"'\"'") + "'"
