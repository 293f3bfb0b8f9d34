"""pydantic's errors as problems in the words of the person who wrote the configuration."""

from collections.abc import Iterator, Mapping
from typing import Any

from pydantic import ValidationError
from pydantic.fields import FieldInfo
from pydantic_core import ErrorDetails

from specserve.config.describe import closest_option, expectation, mended
from specserve.config.keys import dotted_key, family, field_at, kinds, meant_key, option_of_kind
from specserve.config.quote import shell_override
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.rule_ids import RuleId

SECRETS = frozenset({"server.api_key"})
BOOLEAN_HINT = "YAML reads off, no, on and yes as booleans unless they are quoted"

_HEADER = "# @package _global_"
_NOTHING = object()


def problems_of(error: ValidationError, tree: Mapping[str, Any]) -> list[Problem]:
    """One problem per key that is wrong, in the order of the keys in the error."""
    found: dict[str, Problem] = {}
    for detail in error.errors(include_url=False):
        for problem in _translated(detail, tree):
            # A value that fits neither form of a union is reported once per form.
            found.setdefault(problem.key, problem)
    return list(found.values())


def _translated(detail: ErrorDetails, tree: Mapping[str, Any]) -> Iterator[Problem]:
    key = dotted_key(detail["loc"], tree)
    if detail["type"] == "extra_forbidden":
        for path, value in _leaf_values(key, detail["input"]):
            yield _unknown(path, value, tree)
        return
    field = field_at(key.split("."), tree)
    if field is None:
        yield Problem(
            rule=RuleId.UNKNOWN_KEY,
            key=key,
            value=detail["input"],
            expected=detail["msg"],
            fix="remove it",
        )
    elif detail["type"] == "missing":
        yield from _missing(key, field)
    elif detail["type"].startswith("union_tag"):
        yield _wrong_kind(key, field, _at(f"{key}.kind", tree))
    elif family(field.annotation):
        yield _wrong_section(key, field, detail["input"])
    else:
        yield _wrong_value(key, field, _at(key, tree))


def _unknown(key: str, value: object, tree: Mapping[str, Any]) -> Problem:
    if key == "experiment" or key.startswith("experiment."):
        return Problem(
            rule=RuleId.NO_PACKAGE_HEADER,
            key="experiment",
            value=_at("experiment", tree),
            expected="no such section, because an experiment changes the whole run",
            fix=f"make `{_HEADER}` the first line of the experiment file",
        )
    section = key.rpartition(".")[0]
    home = meant_key(key, tree)
    if home is None:
        known = field_at(section.split("."), tree) if section else None
        expected = expectation(known) if known else f"one of {', '.join(RunConfig.model_fields)}"
        return Problem(
            rule=RuleId.UNKNOWN_KEY,
            key=key,
            value=value,
            expected=f"{expected}, not this key",
            fix="remove it",
        )
    expected = home if home == key else f"{home}, for there is no {key}"
    fix = f"set {shell_override(home, value)} in its place"
    other_kind = _kind_that_has(home, tree)
    if other_kind is None:
        return Problem(rule=RuleId.UNKNOWN_KEY, key=key, value=value, expected=expected, fix=fix)
    group, kind = other_kind
    option = f"choose {group}={option_of_kind(group, kind)}"
    if home == key:
        expected = f"{group}.kind={kind} beside it, which alone has this key"
        fix = f"{option}, or remove the key"
    else:
        expected = f"{expected}, and only {group}.kind={kind} has that"
        fix = f"{option} and {fix}"
    return Problem(
        rule=RuleId.KEY_OF_ANOTHER_KIND, key=key, value=value, expected=expected, fix=fix
    )


def _missing(key: str, field: FieldInfo) -> Iterator[Problem]:
    members = family(field.annotation)
    if kinds(members):
        option = option_of_kind(key, next(iter(kinds(members))))
        fix = f"choose {key}={option}"
        yield Problem(
            rule=RuleId.MISSING_KEY,
            key=key,
            value=None,
            expected=f"{expectation(field)}: it is missing",
            fix=fix,
        )
    elif members:
        for name, inner in members[0].model_fields.items():
            yield from _missing(f"{key}.{name}", inner)
    else:
        fix = f"set {shell_override(key, mended(field, _NOTHING))}"
        yield Problem(
            rule=RuleId.MISSING_KEY,
            key=key,
            value=None,
            expected=f"{expectation(field)}: it is missing",
            fix=fix,
        )


def _wrong_kind(key: str, field: FieldInfo, kind: object) -> Problem:
    names = list(kinds(family(field.annotation)))
    option = option_of_kind(key, closest_option(names, kind) or names[0])
    hint = f" ({BOOLEAN_HINT})" if isinstance(kind, bool) else ""
    expected = f"{expectation(field)}{hint}"
    return Problem(
        rule=RuleId.WRONG_KIND,
        key=f"{key}.kind",
        value=kind,
        expected=expected,
        fix=f"choose {key}={option}",
    )


def _wrong_section(key: str, field: FieldInfo, value: object) -> Problem:
    names = list(kinds(family(field.annotation)))
    hint = f" ({BOOLEAN_HINT})" if isinstance(value, bool) else ""
    if names:
        fix = f"choose {key}={option_of_kind(key, closest_option(names, value) or names[0])}"
        return Problem(
            rule=RuleId.VALUE_FOR_A_SECTION,
            key=key,
            value=value,
            expected=f"{expectation(field)}{hint}",
            fix=fix,
        )
    fix = "give its keys one by one, or remove the override"
    return Problem(
        rule=RuleId.VALUE_FOR_A_SECTION,
        key=key,
        value=value,
        expected=f"{expectation(field)}{hint}",
        fix=fix,
    )


def _wrong_value(key: str, field: FieldInfo, value: object) -> Problem:
    if key == "speculation.draft.path" and value is None:
        return Problem(
            rule=RuleId.NO_DRAFT_PATH,
            key=key,
            value=value,
            expected="the folder of the EAGLE-3 draft; this model names none (model.draft_path)",
            fix=f"set {key}=FOLDER, or choose speculation=off policy=off",
        )
    if key in SECRETS:
        return secret_problem(key, field)
    fix = f"set {shell_override(key, mended(field, value))}"
    expected = f"{expectation(field)}{_type_hint(field, value)}"
    return Problem(rule=RuleId.WRONG_VALUE, key=key, value=value, expected=expected, fix=fix)


def secret_problem(key: str, field: FieldInfo) -> Problem:
    """A wrong value that must not be shown."""
    variable = f"SPECSERVE_{key.rpartition('.')[2].upper()}"
    return Problem(
        rule=RuleId.WRONG_SECRET,
        key=key,
        value="(hidden)",
        expected=f"{expectation(field)}; a number needs quotes",
        fix=f"set '{key}=${{oc.env:{variable}}}' and put it into that environment variable",
    )


def _type_hint(field: FieldInfo, value: object) -> str:
    wants_text = "text" in expectation(field)
    if isinstance(value, bool):
        of_words = wants_text or "one of" in expectation(field)
        return f" ({BOOLEAN_HINT})" if of_words else ", not a boolean"
    if isinstance(value, int | float) and wants_text:
        return " (text that looks like a number needs quotes, exactly as it was typed)"
    if isinstance(value, str) and not wants_text:
        return ", without quotes" if value.strip("-").isdigit() else ""
    if isinstance(value, float) and value.is_integer():
        return ", without a decimal point"
    return ""


def _kind_that_has(home: str, tree: Mapping[str, Any]) -> tuple[str, str] | None:
    """(group, kind) if `home` exists only under another kind than the one chosen in `tree`."""
    if field_at(home.split("."), tree) is not None:
        return None
    group = home.partition(".")[0]
    for kind in kinds(family(RunConfig.model_fields[group].annotation)):
        if field_at(home.split("."), {group: {"kind": kind}}) is not None:
            return group, kind
    return None


def _leaf_values(key: str, value: object) -> Iterator[tuple[str, object]]:
    if not isinstance(value, Mapping) or not value:
        yield key, value
        return
    for name, inner in value.items():
        yield from _leaf_values(f"{key}.{name}", inner)


def _at(key: str, tree: Mapping[str, Any]) -> object:
    node: object = tree
    for part in key.split("."):
        node = node.get(part) if isinstance(node, Mapping) else None
    return node
