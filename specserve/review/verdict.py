"""A review: every experiment on both sides, and what became of it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from specserve.check.machine import PlanningMachine
from specserve.review.difference import Difference, compare
from specserve.review.measured import Measured
from specserve.review.revision import Revision
from specserve.review.runs import last_measured
from specserve.review.side import Side

# In the order in which a reader should see them.
Status = Literal[
    "newly broken",
    "danger",
    "changed",
    "added",
    "no longer broken",
    "removed",
    "refused",
    "unchanged",
]
ORDER: tuple[Status, ...] = (
    "newly broken",
    "danger",
    "changed",
    "added",
    "no longer broken",
    "removed",
    "refused",
    "unchanged",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Reviewed:
    """One experiment. `refused`: it cannot work on either side, and could not before."""

    name: str
    status: Status
    difference: Difference
    measured: tuple[Measured, Measured]


@dataclass(frozen=True, slots=True, kw_only=True)
class Review:
    """`notes` are what holds for the whole of a side: files that are not read, or never reached."""

    base: str
    head: str
    machine: str
    experiments: tuple[Reviewed, ...]
    notes: tuple[str, ...]

    @property
    def counts(self) -> Mapping[Status, int]:
        """Experiments by status, in ORDER; only those that occur."""
        found = [reviewed.status for reviewed in self.experiments]
        return {status: found.count(status) for status in ORDER if status in found}

    @property
    def is_broken(self) -> bool:
        """Whether a rule is broken that was not."""
        return any(reviewed.difference.broken for reviewed in self.experiments)

    @property
    def is_dangerous(self) -> bool:
        """Whether there is a danger that was not."""
        return any(reviewed.difference.dangers for reviewed in self.experiments)


def review(
    base: Revision,
    head: Revision,
    overrides: Sequence[str],
    machine: PlanningMachine,
    runs: Path,
) -> Review:
    """Every experiment that lies in the repository on one side at least."""
    before, after = _experiments(base), _experiments(head)
    reviewed = [
        _review_experiment(
            name, name in before, name in after, base, head, overrides, machine, runs
        )
        for name in sorted({*before, *after})
    ]
    reviewed.sort(key=lambda one: (ORDER.index(one.status), one.name))
    return Review(
        base=base.label,
        head=head.label,
        machine=str(machine),
        experiments=tuple(reviewed),
        notes=(*_not_read("base", base), *_not_read("head", head), *_never_reached(head)),
    )


def _experiments(side: Revision) -> set[str]:
    """Those of the repository; an installed conf/ is the same on both sides."""
    found = side.roots.experiments()
    return {name for name, files in found.items() if files[0].is_relative_to(side.snapshot.root)}


def _review_experiment(
    name: str,
    was_there: bool,
    is_there: bool,
    base: Revision,
    head: Revision,
    overrides: Sequence[str],
    machine: PlanningMachine,
    runs: Path,
) -> Reviewed:
    before = base.side(name, overrides, machine) if was_there else Side()
    after = head.side(name, overrides, machine) if is_there else Side()
    difference = compare(before, after)
    status = _status(difference, was_there=was_there, is_there=is_there)
    return Reviewed(
        name=name,
        status=status,
        difference=difference,
        measured=(last_measured(runs, before.config), last_measured(runs, after.config)),
    )


def _status(difference: Difference, *, was_there: bool, is_there: bool) -> Status:
    if not is_there:
        return "removed"
    if difference.broken:
        return "newly broken"
    if difference.dangers:
        return "danger"
    if not was_there:
        return "added"
    if difference.mended and not difference.after.problems:
        return "no longer broken"
    if not difference.is_empty:
        return "changed"
    return "refused" if difference.after.problems else "unchanged"


def _not_read(side: str, revision: Revision) -> list[str]:
    return [f"{side}: {problem}" for _, problem in sorted(revision.snapshot.refused.items())]


def _never_reached(head: Revision) -> list[str]:
    notes = []
    for name, files in head.roots.experiments().items():
        places = [head.snapshot.without_root(str(file)) for file in files]
        notes += [
            f"experiment {name} lies in two search paths: {places[0]} is used, {hidden} never is. "
            "Fix: rename one of them"
            for hidden in places[1:]
        ]
    return notes
