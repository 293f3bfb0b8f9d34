"""What the host knows of a row's counts on the device while rounds are under way."""

from collections.abc import Sequence

from specserve.torch_engine.group import Window


class RowBounds:
    """Upper bounds on one row's counts, tightened as rounds settle.

    `max_length` bounds the tokens in the target's cache, `max_pairs` the draft entries it lacks.
    Launches are numbered upward by the caller.
    """

    def __init__(self, *, length: int, num_pairs: int, has_hole: bool) -> None:
        self.max_length = length
        self.max_pairs = num_pairs
        self.has_hole = has_hole
        self._num_unsettled = 0
        self._pairs_wait_for: int | None = None

    @property
    def length_known(self) -> bool:
        """Whether `max_length` is exact."""
        return self._num_unsettled == 0

    @property
    def pairs_known(self) -> bool:
        """Whether `max_pairs` is exact."""
        return self._pairs_wait_for is None

    def launched_plain(self, *, keeps_up: bool) -> None:
        """A round adds one token; if it keeps the draft up, it lacks that token's entry only."""
        self.max_length += 1
        if keeps_up:
            self.max_pairs, self._pairs_wait_for = 1, None
        else:
            self.max_pairs += 1

    def launched_speculative(self, launch: int, num_steps: int, *, skips: bool) -> None:
        """A round adds 1 … `num_steps` + 1 tokens, and the draft lacks their entries."""
        self.max_length += num_steps + 1
        self.max_pairs = num_steps + 1
        self.has_hole |= skips
        self._num_unsettled += 1
        self._pairs_wait_for = launch

    def settle(self, launch: int, num_steps: int, num_added: int) -> None:
        """A speculative round turned out to have added `num_added` tokens."""
        surplus = num_steps + 1 - num_added
        self.max_length -= surplus
        self._num_unsettled -= 1
        if self._pairs_wait_for == launch:
            self.max_pairs -= surplus
            self._pairs_wait_for = None

    def refilled(self, num_pairs: int) -> None:
        """The `num_pairs` oldest missing entries were made good."""
        self.max_pairs -= num_pairs


def window_of(rows: Sequence[RowBounds], most_pairs: int) -> Window:
    """Bounds for a group of rows, of whose missing entries `most_pairs` can be made good."""
    kv_tokens = max(row.max_length for row in rows)
    num_pairs = max(row.max_pairs for row in rows)
    lengths_known = all(row.length_known and row.max_length == kv_tokens for row in rows)
    return Window(
        kv_tokens=kv_tokens,
        num_pairs=min(num_pairs, most_pairs),
        skips=num_pairs > most_pairs,
        lengths_known=lengths_known,
        entries_known=lengths_known
        and num_pairs <= most_pairs
        and all(
            row.pairs_known and row.max_pairs == num_pairs and not row.has_hole for row in rows
        ),
    )
