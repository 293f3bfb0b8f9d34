"""SGLang's releases: which are supported, and the form of a fact that differs between them.

A row holds one fact for ranges of releases. Its evidence is a text that stands in a file of every
release in the range.
"""

import re
from dataclasses import dataclass
from typing import Generic, TypeVar

from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

SUPPORTED = ("0.5.17", "0.5.18", "0.5.19", "0.5.20", "0.5.21", "0.5.22", "0.5.23")
NEWEST = SUPPORTED[-1]
VERSION_KEY = "engine.allow_untested_version"

_NUMBERS = re.compile(r"(\d+)\.(\d+)\.(\d+)")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Release:
    """The installed release, and the supported one whose rows are applied to it."""

    installed: str
    table: str

    @property
    def is_untested(self) -> bool:
        """Whether the rows are those of another release."""
        return self.installed != self.table


@dataclass(frozen=True, slots=True)
class Evidence:
    """`text` stands in `file`, a path below sglang/srt/."""

    file: str
    text: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Span(Generic[T]):
    """`value` holds from release `since` to release `until`, both included."""

    since: str
    until: str
    value: T
    evidence: tuple[Evidence, ...]

    @property
    def releases(self) -> tuple[str, ...]:
        """The supported releases in the range."""
        return SUPPORTED[SUPPORTED.index(self.since) : SUPPORTED.index(self.until) + 1]


@dataclass(frozen=True, slots=True)
class Row(Generic[T]):
    """One fact over all supported releases; its spans neither overlap nor leave a gap."""

    meaning: str
    spans: tuple[Span[T], ...]

    def at(self, release: Release) -> T:
        """The fact in `release`."""
        for span in self.spans:
            if release.table in span.releases:
                return span.value
        raise LookupError(f"{self.meaning}: no span holds for {release.table}")


def find_release(installed: str, *, allow_untested: bool) -> Release:
    """The rows that `installed` is treated by.

    Raises ConfigError for a release that is not supported, unless `allow_untested`: then the
    nearest older one's rows are applied, or the oldest's.
    """
    if installed in SUPPORTED:
        return Release(installed, installed)
    if not allow_untested:
        raise ConfigError([_unsupported(installed)])
    found = _numbers(installed)
    older = [version for version in SUPPORTED if found and _numbers(version) <= found]
    return Release(installed, older[-1] if older else SUPPORTED[0])


def _unsupported(installed: str) -> Problem:
    return Problem(
        rule=RuleId.UNSUPPORTED_VERSION,
        key=VERSION_KEY,
        value=False,
        expected=f"SGLang {SUPPORTED[0]} to {NEWEST}, found {installed}",
        fix=f"set {VERSION_KEY}=true, or run `pip install sglang=={NEWEST}`",
    )


def _numbers(version: str) -> tuple[int, ...]:
    """The release's numbers, without what follows them; empty if it doesn't begin with three."""
    match = _NUMBERS.match(version)
    return tuple(map(int, match.groups())) if match else ()
