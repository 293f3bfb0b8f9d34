"""Check options on their own: that each composes, and that its section is valid.

An option is judged by its own section, because many are valid in company only (a policy needs a
draft). Composing takes most of the time, so one composition takes an option of every group; where
something is wrong, its options are composed one by one to find whose fault it is.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby, zip_longest
from pathlib import Path
from typing import Any

from specserve.check.catalogue import Option
from specserve.check.place import read_leniently
from specserve.config.compose import compose_tree
from specserve.config.describe import mended
from specserve.config.keys import field_at
from specserve.config.quote import override
from specserve.config.validate import section_problems
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

_NOTHING = object()


def check_options(
    options: Sequence[Option], config_dirs: Sequence[Path]
) -> Iterator[tuple[Option, list[Problem]]]:
    """Every option with its problems, in the order of `options`, which are sorted by group."""
    groups = [list(of_group) for _, of_group in groupby(options, lambda option: option.group)]
    found: dict[Option, list[Problem]] = {}
    for row in zip_longest(*groups):
        found |= _judged([option for option in row if option is not None], config_dirs)
    for option in options:
        yield option, found[option]


def _judged(
    options: Sequence[Option], config_dirs: Sequence[Path]
) -> Mapping[Option, list[Problem]]:
    """At most one option of each group, composed together if that tells enough."""
    if not options:
        return {}
    try:
        tree = _composed(options, config_dirs)
    except ConfigError as error:
        if len(options) == 1:
            return {options[0]: list(error.problems)}
        named = {problem.key.lstrip("+~").partition(".")[0] for problem in error.problems}
        suspects = [option for option in options if option.group in named] or options
        rest = [option for option in options if option not in suspects]
        return {**_one_by_one(suspects, config_dirs), **_judged(rest, config_dirs)}
    found = {option: section_problems(tree, option.group) for option in options}
    suspects = [option for option in options if found[option]]
    return found if len(options) == 1 else {**found, **_one_by_one(suspects, config_dirs)}


def _one_by_one(
    options: Sequence[Option], config_dirs: Sequence[Path]
) -> Mapping[Option, list[Problem]]:
    found: dict[Option, list[Problem]] = {}
    for option in options:
        found |= _judged([option], config_dirs)
    return found


def _composed(options: Sequence[Option], config_dirs: Sequence[Path]) -> dict[str, Any]:
    """Values that the options leave to the user (???) get one that would be accepted."""
    chosen = [override(option.group, option.name) for option in options]
    chosen += _stand_ins(key for option in options for key in _left_open(option))
    try:
        return compose_tree(chosen, config_dirs)
    except ConfigError as error:  # a file that the option is based on may leave some open too
        required = [p.key for p in error.problems if p.rule is RuleId.VALUE_REQUIRED]
        if len(required) < len(error.problems):
            raise
        return compose_tree([*chosen, *_stand_ins(required)], config_dirs)


def _left_open(option: Option) -> Iterator[str]:
    """The keys that the option's own file leaves to the user."""
    for leaf in read_leniently(option.file).leaves:
        if leaf.value == "???":
            yield ".".join((option.group, *leaf.key))


def _stand_ins(keys: Iterable[str]) -> Iterator[str]:
    for key in keys:
        field = field_at(key.split("."), {})
        # A key that does not exist keeps its place, and is told as such.
        yield override(key, mended(field, _NOTHING) if field else "x")
