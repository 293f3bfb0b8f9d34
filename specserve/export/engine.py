"""What an engine's module says about the engine."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass

from specserve.config.policy import WhileOff
from specserve.errors import Problem
from specserve.export.source import Source


@dataclass(frozen=True, slots=True, kw_only=True)
class Attachment:
    """A JSON file that the settings name under `key`."""

    key: str
    content: Mapping[str, object]


@dataclass(frozen=True, slots=True, kw_only=True)
class Translation:
    """`settings` for the engine's configuration file, `environment` for its process."""

    settings: Mapping[str, object]
    environment: Mapping[str, str]
    attachment: Attachment | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetEngine:
    """An engine to export to.

    `rule` names the version whose rule is followed, `counts` what it takes for the batch size.
    `while_off` is what the engine can do with the draft's state while off, its default first.
    `problems` tells what the engine cannot express and no --drop makes up for; `translate` is for
    sources without any.
    """

    name: str
    rule: str
    counts: str
    command: str
    while_off: tuple[WhileOff, ...]
    problems: Callable[[Source], Iterator[Problem]]
    translate: Callable[[Source], Translation]
