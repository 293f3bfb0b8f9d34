"""A configuration file as values with line numbers."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

Key = tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Leaf:
    """A value that is no section; a list counts as one value. Lines count from 1."""

    key: Key
    value: object
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class DefaultsEntry:
    """An entry of a defaults list that chooses an option of a group; `option` None: no option."""

    group: str
    option: str | None
    overrides: bool
    line: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFile:
    """What one file says."""

    leaves: tuple[Leaf, ...]
    choices: tuple[DefaultsEntry, ...]


def read_config_file(path: Path) -> ConfigFile:
    """The contents of a file that Hydra has read without complaint."""
    loader = yaml.SafeLoader(path.read_text(encoding="utf-8"))
    try:
        root = loader.get_single_node()
        if not isinstance(root, yaml.MappingNode):
            return ConfigFile(leaves=(), choices=())
        return ConfigFile(
            leaves=tuple(_leaves(loader, root, ())), choices=tuple(_choices(loader, root))
        )
    finally:
        loader.dispose()


def _leaves(loader: yaml.SafeLoader, node: yaml.MappingNode, path: Key) -> Iterator[Leaf]:
    for name, child in node.value:
        key = (*path, str(loader.construct_object(name)))
        if key in (("defaults",), ("hydra",)):
            continue
        if isinstance(child, yaml.MappingNode) and child.value:
            yield from _leaves(loader, child, key)
        else:
            yield Leaf(key=key, value=_value(loader, child), line=name.start_mark.line + 1)


def _choices(loader: yaml.SafeLoader, root: yaml.MappingNode) -> Iterator[DefaultsEntry]:
    for name, child in root.value:
        if name.value != "defaults" or not isinstance(child, yaml.SequenceNode):
            continue
        for item in child.value:
            entry = _value(loader, item)
            if isinstance(entry, dict):
                yield from _entries(entry, item.start_mark.line + 1)


def _entries(entry: dict[Any, Any], line: int) -> Iterator[DefaultsEntry]:
    """`override /group@package: option`, and all that may be left out of it."""
    for key, option in entry.items():
        *words, name = str(key).split()
        yield DefaultsEntry(
            group=name.lstrip("/").partition("@")[0],
            option=None if option is None else str(option),
            overrides="override" in words,
            line=line,
        )


def _value(loader: yaml.SafeLoader, node: yaml.Node) -> Any:  # noqa: ANN401 (YAML)
    return loader.construct_object(node, deep=True)
