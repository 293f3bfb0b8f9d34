"""Every key of a run: its value, where that comes from, and what becomes of it."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from specserve.check import report_on
from specserve.config.compose import compose_tree
from specserve.config.keys import all_keys, meant_key
from specserve.config.leaves import leaves
from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.errors import ConfigError, Problem
from specserve.explain.becomes import becomes
from specserve.explain.engine_arguments import EngineView, engine_view
from specserve.facts import Facts, gather_facts, load_facts
from specserve.origin import Origin, Setting, Trace, trace_run
from specserve.plan import Adjustment
from specserve.rule_ids import RuleId

_REFERENCE = re.compile(r"\$\{([\w.]+)\}")
_SECRET = "server.api_key"
_HIDDEN = "(hidden)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Explanation:
    """One key. `value` is resolved; `becomes` says what the engine, or who else, gets of it.

    `adjustments` are what the plan made of a value that was left open or that cannot hold.
    """

    key: str
    value: object
    origin: Origin | None
    references: tuple[tuple[str, Origin], ...]
    adjustments: tuple[Adjustment, ...]
    becomes: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExplainedRun:
    """The keys that were asked for.

    `config` is None if it is not valid, `view` if it cannot be planned; `problems` say why.
    """

    keys: tuple[Explanation, ...]
    config: RunConfig | None
    view: EngineView | None
    problems: tuple[Problem, ...]


def explain_run(
    keys: Sequence[str],
    overrides: Sequence[str],
    config_dirs: Sequence[Path],
    facts_file: Path | None,
) -> ExplainedRun:
    """All keys if `keys` is empty; a section stands for those in it.

    A run that composes is explained even if it is refused. Raises ConfigError if it does not, and
    for a key that it lacks.
    """
    tree = compose_tree(overrides, config_dirs)
    values = dict(leaves(tree))
    wanted = _wanted(keys, values, tree)
    trace = trace_run(overrides, config_dirs)
    facts = None if facts_file is None else load_facts(facts_file)
    config, view, problems = _planned(overrides, config_dirs, facts)
    return ExplainedRun(
        keys=tuple(_explain(key, values[key], trace, config, view) for key in wanted),
        config=config,
        view=view,
        problems=problems,
    )


def _wanted(
    keys: Sequence[str], values: Mapping[str, object], tree: Mapping[str, Any]
) -> list[str]:
    problems = [_unknown(key, tree) for key in keys if not _below(key, values)]
    if problems:
        raise ConfigError(problems)
    return list(dict.fromkeys(one for key in keys or [""] for one in _below(key, values)))


def _below(key: str, values: Mapping[str, object]) -> list[str]:
    return [one for one in values if not key or one == key or one.startswith(f"{key}.")]


def _unknown(key: str, tree: Mapping[str, Any]) -> Problem:
    if key in all_keys():
        section = key.partition(".")[0]
        kind = tree.get(section, {}).get("kind")
        expected, fix = f"a key of this run: {section}.kind={kind} has none such", "leave it out"
    else:
        meant = meant_key(key, tree)
        expected = "a key of the configuration, or a section"
        fix = f"use `specserve explain {meant}`" if meant else "see `specserve --cfg job`"
    return Problem(rule=RuleId.WRONG_ARGUMENT, key="KEY", value=key, expected=expected, fix=fix)


def _planned(
    overrides: Sequence[str], config_dirs: Sequence[Path], facts: Facts | None
) -> tuple[RunConfig | None, EngineView | None, tuple[Problem, ...]]:
    """As far as it goes, and why no further."""
    config = None
    try:
        config = load_run(overrides, config_dirs).config
        report = report_on(config, facts or gather_facts(config))
        if report.plan is None:
            return config, None, report.missing
        return config, engine_view(report.plan, report.facts.versions.get("sglang")), ()
    except ConfigError as error:
        return config, None, error.problems


def _explain(
    key: str, value: object, trace: Trace, config: RunConfig | None, view: EngineView | None
) -> Explanation:
    origin = trace.of(key)
    decided = view.plan.adjustments if view else ()
    secret = key == _SECRET and value is not None
    return Explanation(
        key=key,
        value=_HIDDEN if secret else value,
        origin=_hidden(origin) if secret and origin else origin,
        references=tuple(_references(origin, trace)),
        adjustments=tuple(one for one in decided if one.key == key),
        becomes=becomes(key, config, view.arguments if view else ()) if config else (),
    )


def _hidden(origin: Origin) -> Origin:
    """Without the secret itself; where it is read from may be known."""
    return replace(origin, settings=tuple(map(_hidden_setting, origin.settings)))


def _hidden_setting(setting: Setting) -> Setting:
    if setting.value is None or "${" in str(setting.value):
        return setting
    typed = None if setting.typed is None else f"{_SECRET}={_HIDDEN}"
    return replace(setting, value=_HIDDEN, typed=typed)


def _references(origin: Origin | None, trace: Trace) -> Iterator[tuple[str, Origin]]:
    """The keys that a value refers to, those that these refer to, and so on."""
    seen: set[str] = set()
    waiting = [origin] if origin else []
    while waiting:
        for name in _REFERENCE.findall(str(waiting.pop().setting.value)):
            referred = trace.of(name)
            if referred is not None and name not in seen:
                seen.add(name)
                waiting.append(referred)
                yield name, referred
