"""An explanation for people, and as JSON."""

import json
from collections.abc import Iterator
from typing import Any

from specserve.explain.explanation import ExplainedRun, Explanation
from specserve.origin import Choice, Setting
from specserve.origin.places import line_of


def report(run: ExplainedRun) -> str:
    """What cannot work first, then a paragraph for each key."""
    return "\n".join([*_state(run), *_sections(run)])


def document(run: ExplainedRun) -> dict[str, Any]:
    """JSON values."""
    return {
        "keys": [_key_document(one) for one in run.keys],
        "valid": run.config is not None,
        "planned": run.view is not None,
        "engine": run.view.release if run.view else None,
        "problems": [str(problem) for problem in run.problems],
    }


def value_text(value: object) -> str:
    """A value as it is written in YAML's one-line form."""
    if isinstance(value, str):
        return value or '""'
    return json.dumps(value, ensure_ascii=False, default=repr)


def _state(run: ExplainedRun) -> Iterator[str]:
    if run.view is not None:
        if run.view.release:
            yield f"arguments are those of {run.view.release}"
        return
    if run.config is None:
        yield "this run is refused, so that nothing becomes of its values:"
    else:
        yield "no plan could be made, so that what is left open is not decided:"
    yield from (f"  {problem}" for problem in run.problems)


def _sections(run: ExplainedRun) -> Iterator[str]:
    """Who chose a group's option is said once, before the first of its keys."""
    section = None
    for one in run.keys:
        if section != (section := one.key.partition(".")[0]):
            yield from _choice_lines(section, one)
        yield from _lines(one)


def _lines(one: Explanation) -> Iterator[str]:
    yield f"{one.key}: {value_text(one.value)}"
    for adjustment in one.adjustments:
        effective = value_text(adjustment.effective)
        yield f"  decided     {effective} ({adjustment.reason})"
    if one.origin is None:
        return
    yield f"  set by      {_setting(one.origin.setting, with_value=False)}"
    for name, referred in one.references:
        yield f"  refers to   {name}: {_setting(referred.setting)}"
    for loser in one.origin.overrode:
        yield f"  overrode    {_setting(loser)}"
    for text in one.becomes:
        yield f"  becomes     {text}"


def _choice_lines(section: str, one: Explanation) -> Iterator[str]:
    """Said where more than one had an opinion on the group's option."""
    choices = one.origin.choices if one.origin else ()
    if len(choices) > 1:
        yield f"{section} = {choices[-1].option}"
        yield f"  chosen by   {_choice(choices[-1])}"
        for loser in reversed(choices[:-1]):
            yield f"  instead of  {_choice(loser)}"


def _setting(setting: Setting, *, with_value: bool = True) -> str:
    if setting.file is None:
        return f"the command line: {setting.typed}"
    where = line_of(setting.file, setting.line)
    raw = value_text(setting.value)
    return f"{where} ({raw})" if with_value or "${" in raw else where


def _choice(choice: Choice) -> str:
    if choice.file is None:
        return f"the command line: {choice.typed}"
    return f"{line_of(choice.file, choice.line)} ({choice.group}: {choice.option})"


def _key_document(one: Explanation) -> dict[str, Any]:
    origin = one.origin
    return {
        "key": one.key,
        "value": one.value,
        "set_by": _setting_document(origin.setting) if origin else None,
        "overrode": [_setting_document(loser) for loser in origin.overrode] if origin else [],
        "refers_to": {name: _setting_document(o.setting) for name, o in one.references},
        "choices": [_choice_document(c) for c in reversed(origin.choices)] if origin else [],
        "decided": [
            {"effective": a.effective, "asked": a.asked, "reason": a.reason}
            for a in one.adjustments
        ],
        "becomes": list(one.becomes),
    }


def _setting_document(setting: Setting) -> dict[str, Any]:
    return {
        "value": setting.value,
        "file": str(setting.file) if setting.file else None,
        "line": setting.line,
        "override": setting.typed,
    }


def _choice_document(choice: Choice) -> dict[str, Any]:
    return {
        "group": choice.group,
        "option": choice.option,
        "file": str(choice.file) if choice.file else None,
        "line": choice.line,
        "override": choice.typed,
    }
