"""The option files of conf/ as they are written: what each is for, and the values it gives."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

# Lines of a file's head that speak to a program, not to a reader.
_FOR_PROGRAMS = ("# yaml-language-server:", "# @package")


def option_names(folder: Path) -> list[str]:
    """The options of a group, sorted; parts for other files are left out."""
    return sorted(file.stem for file in folder.glob("*.yaml") if not file.stem.startswith("_"))


def default_options(conf: Path) -> dict[str, str]:
    """The option of each group that a run has if it chooses none."""
    chosen: dict[str, str] = {}
    for entry in _read(conf / "config.yaml")["defaults"]:
        if isinstance(entry, Mapping):
            chosen |= {str(group): str(option) for group, option in entry.items()}
    return chosen


def option_values(folder: Path, option: str) -> dict[str, Any]:
    """The values by dotted key, with those of the options that its defaults list names."""
    content = _read(folder / f"{option}.yaml")
    values: dict[str, Any] = {}
    for entry in content.pop("defaults", ["_self_"]):
        values |= _flat(content) if entry == "_self_" else option_values(folder, str(entry))
    return values


def purpose(file: Path) -> str:
    """The first sentence of the comment that heads the file."""
    lines = []
    for line in file.read_text(encoding="utf-8").splitlines():
        if not line.startswith("#"):
            break
        if not line.startswith(_FOR_PROGRAMS):
            lines.append(line.removeprefix("#").strip())
    text = " ".join(lines)
    end = next((i for i, sign in enumerate(text) if sign == "." and text[i + 1 : i + 2] == " "), -1)
    return text if end < 0 else text[: end + 1]


def _read(file: Path) -> dict[str, Any]:
    content: dict[str, Any] = yaml.safe_load(file.read_text(encoding="utf-8"))
    return content


def _flat(tree: Mapping[str, Any], path: tuple[str, ...] = ()) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, value in tree.items():
        if isinstance(value, Mapping) and value:
            values |= _flat(value, (*path, str(name)))
        else:
            values[".".join((*path, str(name)))] = value
    return values
