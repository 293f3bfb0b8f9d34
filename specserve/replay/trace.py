"""A load over time: how many requests decode, and how well the draft would do on them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a trace says of the moment `time` (seconds), and of all after it up to the next row."""

    time: float
    running_decodes: int
    acceptance: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Span:
    """The load between `begin` and `end`, in seconds since the trace began.

    `acceptance[i]` is the chance that draft token i + 1 of a round is accepted: it never grows.
    """

    begin: float
    end: float
    running_decodes: int
    acceptance: tuple[float, ...]

    @property
    def seconds(self) -> float:
        """How long it lasts; more than 0."""
        return self.end - self.begin


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace:
    """Spans without gaps from 0 on. `source` says in words where it comes from."""

    source: str
    spans: tuple[Span, ...]

    @property
    def seconds(self) -> float:
        """Length of the trace."""
        return self.spans[-1].end

    @property
    def peak(self) -> int:
        """Most running decodes."""
        return max(span.running_decodes for span in self.spans)


def hold(rows: Sequence[Row], source: str) -> Trace:
    """The trace in which every row holds until the next; the last one only says when it ends.

    Times of `rows` (two at least) increase. Rows that change nothing are merged.
    """
    origin = rows[0].time
    kept = [rows[0], *(row for before, row in pairwise(rows[:-1]) if _load(row) != _load(before))]
    ends = [*(row.time for row in kept[1:]), rows[-1].time]
    return Trace(
        source=source,
        spans=tuple(
            Span(
                begin=row.time - origin,
                end=end - origin,
                running_decodes=row.running_decodes,
                acceptance=row.acceptance,
            )
            for row, end in zip(kept, ends, strict=True)
        ),
    )


def _load(row: Row) -> tuple[int, tuple[float, ...]]:
    return row.running_decodes, row.acceptance


def with_acceptance(trace: Trace, acceptance: tuple[float, ...]) -> Trace:
    """The same load with this acceptance throughout."""
    return Trace(
        source=trace.source,
        spans=tuple(replace(span, acceptance=acceptance) for span in trace.spans),
    )
