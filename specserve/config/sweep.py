"""Several runs in one command line: Hydra's sweeps, key=a,b and choice(a,b) and range(1,4)."""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.core.override_parser.types import ValueType
from hydra.errors import HydraException

_LISTED = (ValueType.CHOICE_SWEEP, ValueType.SIMPLE_CHOICE_SWEEP, ValueType.RANGE_SWEEP)


@dataclass(frozen=True, slots=True)
class SweptRun:
    """The overrides of one run, each with a single value, and those that tell it from others."""

    overrides: tuple[str, ...]
    chosen: tuple[str, ...]


def expand_sweeps(overrides: Sequence[str]) -> list[SweptRun]:
    """Every combination of the values, in Hydra's order: the last override varies fastest.

    What Hydra cannot read or does not list (glob, interval) stays as it is, for `load_run` to name.
    """
    parser = OverridesParser.create()
    values = [_values(parser, text) for text in overrides]
    varies = [len(alternatives) > 1 for alternatives in values]
    return [
        SweptRun(
            tuple(texts), tuple(text for text, varied in zip(texts, varies, strict=True) if varied)
        )
        for texts in product(*values)
    ]


def _values(parser: OverridesParser, text: str) -> list[str]:
    try:
        override = parser.parse_override(text)
    except HydraException:
        return [text]
    if not override.is_sweep_override() or override.value_type not in _LISTED:
        return [text]
    key = text.partition("=")[0]
    return [f"{key}={value}" for value in override.sweep_string_iterator()]
