"""The live estimate of how likely each draft token of a round is accepted."""

from collections.abc import Sequence
from itertools import accumulate
from operator import mul

from specserve.calibration.goodput import expected_tokens
from specserve.policy.observation import RoundCounters


class AcceptanceEstimate:
    """A moving average by position, begun with a prior.

    For each position it holds the chance that the token is accepted if the one before it was. A
    round speaks for the positions that it drafted, with the weight of its requests, and its weight
    halves with every further `window_rounds` rounds that speak for the position. A position that
    is not drafted keeps its last known chance. The prior weighs as much as `window_rounds` rounds
    of one request.
    """

    def __init__(self, prior: Sequence[float], window_rounds: int) -> None:
        """`prior[i]` is the chance that draft token i + 1 is accepted; it never grows with i."""
        self._kept = 0.5 ** (1 / window_rounds)
        self._accepted = [window_rounds * chance for chance in prior]
        self._tried = [float(window_rounds), *self._accepted][: len(prior)]
        self._renew()

    @property
    def acceptance(self) -> Sequence[float]:
        """Chance that draft token i + 1 of a round is accepted; never grows with i."""
        return self._acceptance

    @property
    def expected_tokens(self) -> Sequence[float]:
        """Tokens that a request gets from a round of each depth, from 0 on."""
        return self._expected_tokens

    def observe(self, counters: RoundCounters) -> None:
        """Learn from a round. Tokens deeper than the prior's are ignored."""
        tried = counters.verified
        for position, accepted in enumerate(counters.accepted_by_position[: len(self._tried)]):
            if not tried:
                break
            self._tried[position] = self._tried[position] * self._kept + tried
            self._accepted[position] = self._accepted[position] * self._kept + accepted
            tried = accepted
        self._renew()

    def _renew(self) -> None:
        chances = [
            accepted / tried if tried else 0.0
            for accepted, tried in zip(self._accepted, self._tried, strict=True)
        ]
        self._acceptance = list(accumulate(chances, mul))
        self._expected_tokens = expected_tokens(self._acceptance)
