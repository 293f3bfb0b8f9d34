"""Acceptance as a trace file writes it down: which columns say it, and what a line says."""

from collections.abc import Callable, Iterable, Sequence

from specserve.replay.acceptance import by_chance, by_rate, falls
from specserve.replay.cells import WrongCellError, share, whole
from specserve.replay.records import Record

# The chances of the positions in one line; None if it leaves them open.
ReadAcceptance = Callable[[Record], tuple[float, ...] | None]

FORMS = (
    "acceptance (chance of a draft token, given the one before), acceptance_1, acceptance_2 … "
    "(chance of each position), or acceptance_rate and num_steps (accepted / drafted, and depth)"
)


def acceptance_reader(names: Iterable[str], positions: int) -> ReadAcceptance | None:
    """How to read acceptance of `positions` draft tokens from columns `names`; None if they say
    nothing of the kind."""
    columns = list(names)
    numbered = [f"acceptance_{i + 1}" for i in range(len(columns))]
    if columns == ["acceptance"]:
        return lambda record: _chance_or_list(record.cells["acceptance"], positions)
    if sorted(columns) == ["acceptance_rate", "num_steps"]:
        return lambda record: _from_rate(record, positions)
    if columns and set(columns) == set(numbered):
        return lambda record: _from_numbered([record.cells[n] for n in numbered], positions)
    return None


def by_position(chances: Sequence[object], positions: int) -> tuple[float, ...]:
    """The first `positions` of `chances`. Raises WrongCellError if they are too few or grow."""
    values = [share(f"acceptance_{i + 1}", chance) for i, chance in enumerate(chances)]
    if len(values) < positions:
        raise WrongCellError(
            f"acceptance of {positions} positions, found {len(values)}",
            f"give all {positions}, or one acceptance: the chance of each given the one before",
        )
    if not falls(values):
        raise WrongCellError(
            f"chances that never grow from position to position, found {values}",
            "count a position as accepted only with all before it",
        )
    return tuple(values[:positions])


def _chance_or_list(value: object, positions: int) -> tuple[float, ...] | None:
    if value is None:
        return None
    if isinstance(value, list):
        return by_position(value, positions)
    return by_chance(share("acceptance", value), positions)


def _from_numbered(values: Sequence[object], positions: int) -> tuple[float, ...] | None:
    return None if set(values) == {None} else by_position(values, positions)


def _from_rate(record: Record, positions: int) -> tuple[float, ...] | None:
    """Plain rounds draft nothing: their rate says nothing."""
    if record.cells["acceptance_rate"] is None or record.cells["num_steps"] in (None, 0):
        return None
    rate = share("acceptance_rate", record.cells["acceptance_rate"])
    return by_rate(rate, whole(record, "num_steps", 1), positions)
