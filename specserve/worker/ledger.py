"""The ledger: the machine-readable record of a build, and what is missing from it."""

from collections.abc import Iterable
from pathlib import Path

from specserve.worker.journal import Journal, read_journal
from specserve.worker.phases import CLOSING, Phase, PhaseRecord


class Ledger(Journal[PhaseRecord]):
    """ledger.jsonl of one run, written by the supervisor only."""


def read_ledger(path: Path) -> tuple[PhaseRecord, ...]:
    """Every whole record, in order; JournalError names a line that is none."""
    return read_journal(path, PhaseRecord)


def missing_phases(records: Iterable[PhaseRecord], num_ranks: int) -> tuple[tuple[int, Phase], ...]:
    """(rank, phase) pairs without a closing record; a build with one of them isn't complete."""
    closed = {(record.rank, record.phase) for record in records if record.event in CLOSING}
    return tuple(
        (rank, phase) for rank in range(num_ranks) for phase in Phase if (rank, phase) not in closed
    )
