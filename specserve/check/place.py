"""Where a key is written: the file and the line, as far as the YAML files tell."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from specserve.check.catalogue import Catalogue, Option
from specserve.config.compose import CONFIG_NAME
from specserve.origin.lines import ConfigFile, read_config_file
from specserve.origin.places import line_of

_FILE_AND_LINE = re.compile(r"(?P<file>.+\.yaml)(?::(?P<line>\d+))?")


@dataclass(frozen=True, slots=True)
class Place:
    """A line of a file; lines count from 1."""

    file: Path
    line: int

    def __str__(self) -> str:
        return line_of(self.file, self.line)


def place_of(key: str, option: Option, catalogue: Catalogue) -> Place:
    """The line that sets `key` where `option` is chosen, else the nearest one to change.

    Unlike a trace of a composition it can be told of one that fails. What the option's own file
    sets comes first, then the file of the group's chosen option; a key that none of them has is
    placed where its section begins, or where its group is chosen.
    """
    named = _named_file(key, catalogue)
    if named is not None:
        return named
    parts = tuple(key.lstrip("+~").split("."))
    own = parts if option.is_experiment else parts[1:]
    chosen = _chosen_file(parts[0], option, catalogue) if option.is_experiment else None
    candidates = (
        _line(option.file, own),
        _line(chosen, parts[1:]) if chosen else None,
        *(_line(option.file, own[:length]) for length in range(len(own) - 1, 0, -1)),
        _choice(option.file, parts[0]),
    )
    return next((place for place in candidates if place is not None), Place(option.file, 1))


def _named_file(key: str, catalogue: Catalogue) -> Place | None:
    """For problems of a file as such, whose key is its name."""
    found = _FILE_AND_LINE.fullmatch(key)
    if found is None:
        return None
    files = [folder / found["file"] for folder in (Path(), *catalogue.folders)]
    line = int(found["line"] or 1)
    return next((Place(file.absolute(), line) for file in files if file.is_file()), None)


def _chosen_file(group: str, experiment: Option, catalogue: Catalogue) -> Path | None:
    """The file of the option that the experiment, else the primary config, chooses for `group`."""
    for file in (experiment.file, catalogue.folders[0] / f"{CONFIG_NAME}.yaml"):
        for choice in read_leniently(file).choices:
            if choice.group == group and choice.option is not None:
                return catalogue.file_of(group, choice.option)
    return None


def _choice(file: Path, group: str) -> Place | None:
    """The line of the defaults list that chooses an option of `group`."""
    lines = (choice.line for choice in read_leniently(file).choices if choice.group == group)
    return next((Place(file, line) for line in lines), None)


def _line(file: Path, key: Sequence[str]) -> Place | None:
    """Where the key stands in the file, or the first one inside it; None for an empty key."""
    leaves = read_leniently(file).leaves if key else ()
    lines = (leaf.line for leaf in leaves if leaf.key[: len(key)] == key)
    return next((Place(file, line) for line in lines), None)


def read_leniently(file: Path) -> ConfigFile:
    """What the file says; nothing of one that cannot be read, which is told elsewhere."""
    try:
        return read_config_file(file)
    except (OSError, UnicodeDecodeError, yaml.YAMLError):
        return ConfigFile(leaves=(), choices=())
