"""What sets two configurations apart, by its effect."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

from specserve.config.leaves import leaves
from specserve.config.problems import SECRETS
from specserve.errors import Doubt, Problem
from specserve.plan.memory_plan import MemoryPlan
from specserve.review.depths import DepthRow, depth_rows
from specserve.review.side import Side
from specserve.rulebook import RULEBOOK

HIDDEN = "(hidden)"
Told = TypeVar("Told", Problem, Doubt)


class Absent(Enum):
    """Of what a side does not have."""

    ABSENT = "absent"


ABSENT = Absent.ABSENT


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """`before` and `after` are plain values; ABSENT where a side has nothing of that name.

    `key` is the setting that an engine argument comes from, or the name itself.
    """

    name: str
    key: str
    before: object
    after: object


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """From `before` to `after`; every part is empty where the two agree or nobody knows.

    `decided` are values that differ from what the configuration says: asked -> effective, reason.
    `broken` and `mended` are problems, `doubts` and `settled` are doubts, that only one side has.
    """

    before: Side
    after: Side
    keys: tuple[Change, ...]
    depths: tuple[DepthRow, ...]
    arguments: tuple[Change, ...]
    memory: tuple[Change, ...]
    decided: tuple[Change, ...]
    broken: tuple[Problem, ...]
    mended: tuple[Problem, ...]
    doubts: tuple[Doubt, ...]
    settled: tuple[Doubt, ...]

    @property
    def is_empty(self) -> bool:
        """Whether the two are the same in every respect that was looked at."""
        parts = (self.keys, self.depths, self.arguments, self.memory, self.decided)
        return not any((*parts, self.broken, self.mended, self.doubts, self.settled))

    @property
    def dangers(self) -> tuple[Doubt, ...]:
        """New doubts that are dangers by the rulebook."""
        return tuple(d for d in self.doubts if RULEBOOK[d.rule].severity == "danger")


def compare(before: Side, after: Side) -> Difference:
    """Everything that differs."""
    rows = depth_rows(before.depths, after.depths)
    both_planned = before.plan is not None and after.plan is not None
    return Difference(
        before=before,
        after=after,
        keys=tuple(_key_changes(before, after)),
        depths=tuple(rows) if any(row.before != row.after for row in rows) else (),
        arguments=tuple(_argument_changes(before, after)) if both_planned else (),
        memory=tuple(_memory_changes(before, after)) if both_planned else (),
        decided=tuple(_changes(_decided(before), _decided(after))) if both_planned else (),
        broken=_only(after.problems, before.problems),
        mended=_only(before.problems, after.problems),
        doubts=_only(after.doubts, before.doubts),
        settled=_only(before.doubts, after.doubts),
    )


def _key_changes(before: Side, after: Side) -> Iterator[Change]:
    """Of valid values, which 120 and 120.0 may both be; as written, if a side is not valid."""
    if before.config is not None and after.config is not None:
        old, new = before.config.model_dump(mode="json"), after.config.model_dump(mode="json")
    else:
        old, new = dict(before.tree or {}), dict(after.tree or {})
    return _changes(dict(leaves(old)), dict(leaves(new)))


def _changes(before: Mapping[str, object], after: Mapping[str, object]) -> Iterator[Change]:
    """In the order of `after`, then what it lacks. Types count: 1 is not 1.0, nor True."""
    for name in dict.fromkeys([*after, *before]):
        old, new = before.get(name, ABSENT), after.get(name, ABSENT)
        if (type(old), old) != (type(new), new):
            yield Change(name=name, key=name, before=_shown(name, old), after=_shown(name, new))


def _shown(key: str, value: object) -> object:
    return HIDDEN if key in SECRETS and isinstance(value, str) else value


def _argument_changes(before: Side, after: Side) -> Iterator[Change]:
    old = {argument.name: argument for argument in before.arguments}
    new = {argument.name: argument for argument in after.arguments}
    for name in dict.fromkeys([*new, *old]):
        was = old[name].value if name in old else ABSENT
        now = new[name].value if name in new else ABSENT
        if was != now:
            yield Change(name=name, key=(new.get(name) or old[name]).key, before=was, after=now)


def _memory_changes(before: Side, after: Side) -> Iterator[Change]:
    """Bytes on each device by part; all parts, if one differs, for they make up the sum."""
    old, new = _memory(before), _memory(after)
    if old == new:
        return
    for name in dict.fromkeys([*new, *old]):
        yield Change(name=name, key=name, before=old.get(name, ABSENT), after=new.get(name, ABSENT))


def _memory(side: Side) -> Mapping[str, int]:
    memory: MemoryPlan | None = side.plan.memory if side.plan else None
    if memory is None:
        return {}
    parts: dict[str, int] = {row.what: memory.bytes_of(row.what) for row in memory.rows}
    return {**parts, "needed": memory.needed_bytes}


def _decided(side: Side) -> Mapping[str, object]:
    adjustments = side.plan.adjustments if side.plan else ()
    return {a.key: f"{a.asked} -> {a.effective} ({a.reason})" for a in adjustments}


def _only(these: Sequence[Told], others: Sequence[Told]) -> tuple[Told, ...]:
    """Those whose rule and key the others lack: a figure in the text is no other rule."""
    known = {(one.rule, one.key) for one in others}
    return tuple(one for one in these if (one.rule, one.key) not in known)
