"""What a verification would have counted, drawn by the true acceptance."""

from bisect import bisect_left
from collections.abc import Sequence
from itertools import accumulate
from random import Random

from specserve.policy.observation import RoundCounters


class Draws:
    """Counters of rounds; the same seed and the same calls give the same counters."""

    def __init__(self, seed: int) -> None:
        self._random = Random(seed).random

    def verify(
        self, running_decodes: int, num_steps: int, acceptance: Sequence[float]
    ) -> RoundCounters:
        """A chain of `num_steps` (1 or more) for each of `running_decodes` requests.

        A request has its draft token i + 1 accepted, and all before it, with chance
        `acceptance[i]`: one number between 0 and 1, drawn for it, must lie below.
        """
        # 1 - a grows with the position, and 1 - u is as good a draw as u: bisect finds how many.
        thresholds = [1 - chance for chance in acceptance[:num_steps]]
        ending = [0] * (num_steps + 1)
        draw = self._random
        for _ in range(running_decodes):
            ending[bisect_left(thresholds, draw())] += 1
        reaching = list(accumulate(reversed(ending)))[::-1]
        return RoundCounters(
            num_steps=num_steps,
            verified=running_decodes,
            drafted=running_decodes * num_steps,
            accepted_by_position=tuple(reaching[1:]),
        )
