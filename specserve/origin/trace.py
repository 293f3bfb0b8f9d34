"""The chain of settings behind every key: who set it, and what that overrode."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specserve.config.sources import MergedFile, Sources, ValueOverride, read_sources
from specserve.origin.lines import ConfigFile, Key, read_config_file


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """A value as written, `${…}` included: in a line of `file`, or in the override `typed`."""

    value: object
    option: str | None
    file: Path | None
    line: int | None
    typed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Choice:
    """Why a group has this option: a line of a defaults list, or the override `typed`."""

    group: str
    option: str | None
    file: Path | None
    line: int | None
    typed: str | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """Settings of one key, the first to the last, which holds; `choices` likewise, of its group."""

    settings: tuple[Setting, ...]
    choices: tuple[Choice, ...]

    @property
    def setting(self) -> Setting:
        """The one that holds."""
        return self.settings[-1]

    @property
    def overrode(self) -> tuple[Setting, ...]:
        """Those that lost, the latest first."""
        return tuple(reversed(self.settings[:-1]))


@dataclass(frozen=True, slots=True)
class Trace:
    """Origins by dotted key."""

    origins: Mapping[str, Origin]

    def of(self, key: str) -> Origin | None:
        """The origin of `key`, or of the closest section around it that was set as a whole."""
        while key and key not in self.origins:
            key = key.rpartition(".")[0]
        return self.origins.get(key)


def trace_run(
    overrides: Sequence[str], config_dirs: Sequence[Path] = (), *, conf: Path | None = None
) -> Trace:
    """Of a run that `compose_run` composes without a problem."""
    sources = read_sources(overrides, config_dirs, conf=conf)
    contents = [(merged, read_config_file(merged.path)) for merged in sources.files]
    chains: dict[Key, list[Setting]] = {}
    for merged, content in contents:
        for leaf in content.leaves:
            setting = Setting(
                value=leaf.value,
                option=merged.option,
                file=merged.path,
                line=leaf.line,
                typed=None,
            )
            _set(chains, (*merged.package, *leaf.key), setting)
    for override in sources.overrides:
        _apply(chains, override)
    choices = _choices(sources, contents)
    return Trace(
        {
            ".".join(key): Origin(settings=tuple(chain), choices=choices.get(key[0], ()))
            for key, chain in chains.items()
        }
    )


def _set(chains: dict[Key, list[Setting]], key: Key, setting: Setting) -> None:
    """A value for a section ends what was set inside, and the other way round."""
    ended = [k for k in chains if k != key and (k[: len(key)] == key or key[: len(k)] == k)]
    before = [one for k in ended if key[: len(k)] == k for one in chains[k]]
    for gone in ended:
        del chains[gone]
    chains.setdefault(key, before).append(setting)


def _apply(chains: dict[Key, list[Setting]], override: ValueOverride) -> None:
    if override.deletes:
        for key in [k for k in chains if k[: len(override.key)] == override.key]:
            del chains[key]
        return
    for key, value in _leaves(override.key, override.value):
        setting = Setting(value=value, option=None, file=None, line=None, typed=override.text)
        _set(chains, key, setting)


def _leaves(key: Key, value: Any) -> Iterator[tuple[Key, object]]:  # noqa: ANN401 (plain data)
    if not isinstance(value, dict) or not value:
        yield key, value
        return
    for name, inner in value.items():
        yield from _leaves((*key, str(name)), inner)


def _choices(
    sources: Sources, contents: Sequence[tuple[MergedFile, ConfigFile]]
) -> dict[str, tuple[Choice, ...]]:
    """By group. `override /group: option` beats a plain entry, and what was typed beats both."""
    found: dict[str, list[Choice]] = {}
    entries = [(merged, entry) for merged, content in contents for entry in content.choices]
    for merged, entry in sorted(entries, key=lambda one: one[1].overrides):
        choice = Choice(
            group=entry.group, option=entry.option, file=merged.path, line=entry.line, typed=None
        )
        found.setdefault(entry.group, []).append(choice)
    for group, text in sources.choices.items():
        option = text.partition("=")[2]
        found.setdefault(group, []).append(
            Choice(group=group, option=option, file=None, line=None, typed=text)
        )
    return {group: tuple(choices) for group, choices in found.items()}
