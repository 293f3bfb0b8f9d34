"""Hydra's complaints about the files of conf/, as problems that name the file or the key."""

import re
from collections.abc import Sequence
from pathlib import Path

from specserve.config.describe import closest_option
from specserve.config.keys import nearest
from specserve.config.problems import BOOLEAN_HINT
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.rule_ids import RuleId

_FILE = re.compile(r"In '([^']+)': ")


def missing_option(missing: str, options: Sequence[str], message: str) -> Problem:
    """For a defaults list that names `missing` (group/option), which is not among `options`."""
    group, _, name = missing.rpartition("/")
    shown = [option for option in options if not option.startswith("_")]
    if not shown:
        return Problem(
            rule=RuleId.UNKNOWN_FILE,
            key=group or name,
            value=name,
            expected=f"a file that exists{_place(message)}",
            fix="correct the name in the defaults list",
        )
    return Problem(
        rule=RuleId.UNKNOWN_OPTION,
        key=group,
        value=name,
        expected=f"one of {', '.join(shown)}{_place(message)}",
        fix=f"choose {group}={closest_option(shown, name) or shown[0]}",
    )


def bad_yaml(file: str, line: int, reason: str) -> Problem:
    """For a file that is not YAML; `line` counts from 1."""
    return Problem(
        rule=RuleId.BAD_YAML,
        key=f"{file}:{line}",
        value=reason,
        expected="YAML that can be read",
        fix="mend that line",
    )


def not_utf8(folders: Sequence[Path]) -> Problem:
    """For an encoding error that Hydra raises without the file's name."""
    files = [f for folder in folders for f in sorted(folder.rglob("*.yaml")) if not _is_utf8(f)]
    names = ", ".join(map(str, files)) or "conf"
    return Problem(
        rule=RuleId.NOT_UTF8,
        key=names,
        value=None,
        expected="text in UTF-8",
        fix="save the file as UTF-8",
    )


def boolean_option() -> Problem:
    """For a defaults list in which an unquoted off became a boolean."""
    return Problem(
        rule=RuleId.BOOLEAN_OPTION,
        key="defaults",
        value=False,
        expected=f"names of options ({BOOLEAN_HINT})",
        fix='quote the name in the defaults list, for example `- override /policy: "off"`',
    )


def refused_by_hydra(message: str) -> Problem:
    """Everything else: Hydra's first line, with the key or the file that it speaks of."""
    file = _FILE.match(message)
    lines = [line.strip() for line in message.removeprefix(file[0] if file else "").splitlines()]
    reason = lines[0] if lines else "no reason given"
    key = _key_of(message)
    if file and key and "No match in the defaults list" in reason:
        groups = list(RunConfig.model_fields)
        near = nearest(key, groups)
        return Problem(
            rule=RuleId.UNKNOWN_GROUP,
            key=f"{file[1]}.yaml",
            value=f"override /{key}",
            expected=f"a group of the defaults list: one of {', '.join(groups)}",
            fix=f"write `override /{near}`" if near else "correct the name",
        )
    place = f"{file[1]}.yaml" if file else key or "conf"
    if place.startswith("hydra."):
        fix = "remove it, or look its name up in `specserve --cfg hydra`"
    else:
        fix = f"correct {place}" if file else f"remove the override of {place}"
    return Problem(
        rule=RuleId.REFUSED_BY_HYDRA,
        key=place,
        value=None,
        expected=f"what Hydra accepts ({reason})",
        fix=fix,
    )


def _key_of(message: str) -> str | None:
    found = re.search(r"full_key: (\S+)", message) or re.search(r"'([\w.@/]+)'", message)
    quoted = re.search(r"(?:override|config\.|append) '([^']+)'", message)
    return (quoted or found or (None, None))[1]


def _place(message: str) -> str:
    file = _FILE.match(message)
    return f" (named in {file[1]}.yaml)" if file and file[1] != "config" else ""


def _is_utf8(file: Path) -> bool:
    try:
        file.read_text(encoding="utf-8")
    except UnicodeDecodeError:
        return False
    return True
