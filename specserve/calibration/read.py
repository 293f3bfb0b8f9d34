"""A calibration file becomes a Calibration, or all that is wrong with it."""

import json
from collections.abc import Iterator
from pathlib import Path

from pydantic import ValidationError
from pydantic_core import ErrorDetails

from specserve.calibration.table import FORMAT, Calibration
from specserve.config.paths import resolve_path
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

KEY = "policy.calibration"


def read_calibration(path: str, key: str = KEY) -> Calibration:
    """The calibration at `path` (or `bundled:NAME`), which the configuration's `key` names.

    Raises ConfigError with every problem of the file.
    """
    content = _content(path, key)
    found = _format(content)
    if found != FORMAT:
        expected = f"a calibration with format {FORMAT!r}, but its format is {found!r}"
        raise ConfigError([_problem(key, path, expected)])
    try:
        return Calibration.model_validate_json(content)
    except ValidationError as error:
        wrong = [text for detail in error.errors(include_url=False) for text in _wrong(detail)]
        raise ConfigError(
            [_problem(key, path, f"a calibration, but its {text}") for text in wrong]
        ) from error


def save_calibration(calibration: Calibration, path: Path) -> None:
    """Write `calibration` as JSON. Raises OSError."""
    path.write_text(calibration.model_dump_json(indent=2) + "\n", encoding="utf-8")


def _content(path: str, key: str) -> bytes:
    try:
        return resolve_path(path).read_bytes()
    except OSError as error:
        expected = f"a calibration file, but it cannot be read ({error.strerror})"
        raise ConfigError([_problem(key, path, expected)]) from error


def _format(content: bytes) -> object:
    """What the file says of its own format; None if it says nothing, or is no JSON object."""
    try:
        tree = json.loads(content)
    except ValueError:  # no JSON, or not even text
        return None
    return tree.get("format") if isinstance(tree, dict) else None


def _wrong(detail: ErrorDetails) -> Iterator[str]:
    """The place in the file, what was found there, and what is wrong with it."""
    if detail["type"] == "no_table":
        for fault in detail["ctx"]["all"]:
            yield f"{fault.place} is {fault.found}: expected {fault.expected}"
        return
    place = "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in detail["loc"]).lstrip(".")
    found = "missing" if detail["type"] == "missing" else f"{detail['input']!r}"
    yield f"{place} is {found}: {detail['msg']}"


def _problem(key: str, path: str, expected: str) -> Problem:
    fix = f"set {key} to a file that `specserve calibrate` wrote"
    return Problem(rule=RuleId.BAD_CALIBRATION, key=key, value=path, expected=expected, fix=fix)
