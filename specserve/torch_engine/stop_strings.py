"""Stop strings in a stream of text: cut before the first, hold back what may become one."""

from typing import NamedTuple


class Cut(NamedTuple):
    """Text that can be shown now, and whether a stop string was completed after it."""

    text: str
    stopped: bool


class StopStrings:
    """Watches one request's text. Feed it token by token and the cut never depends on the rounds.

    A piece costs time in proportion to its own length and that of the stop strings, not to what
    was shown before.
    """

    def __init__(self, stops: tuple[str, ...]) -> None:
        self._stops = stops
        self._longest_prefix = max((len(stop) for stop in stops), default=1) - 1
        self._held = ""

    def feed(self, text: str) -> Cut:
        """Take the next piece of text. After `stopped` the stream is over."""
        text = self._held + text
        starts = [start for stop in self._stops if (start := text.find(stop)) >= 0]
        if starts:
            self._held = ""
            return Cut(text[: min(starts)], stopped=True)
        shown = len(text) - self._num_undecided(text)
        self._held = text[shown:]
        return Cut(text[:shown], stopped=False)

    def flush(self) -> str:
        """Give out what is held back: no more text will come."""
        held, self._held = self._held, ""
        return held

    def _num_undecided(self, text: str) -> int:
        """Length of the longest end of `text` with which a stop string begins."""
        for length in range(min(self._longest_prefix, len(text)), 0, -1):
            if any(stop.startswith(text[-length:]) for stop in self._stops):
                return length
        return 0
