"""From what a policy would like to what it does: its bounds, its pace, and its looks."""

from collections.abc import Sequence
from typing import NamedTuple

from specserve.config.policy import AcceptancePolicy, CostModelPolicy
from specserve.policy.dwell import Dwell, held_reason
from specserve.policy.observation import Decision


class Wish(NamedTuple):
    """The depth that a policy finds best with `running` decodes, and why.

    Bounds allow `limit` at most. `candidates` are the depths that may be looked at, ascending.
    """

    running: int
    num_steps: int
    reason: str
    limit: int
    candidates: Sequence[int]


class Course:
    """Follows wishes at the pace of the dwell, but leaves a depth outside the bounds at once.

    A policy only learns about tokens that are drafted. So where a shallower depth than the deepest
    candidate is in force, every `explore_every_rounds` rounds there is one look at the next deeper
    one, for max(1, `min_dwell_rounds`) rounds = L. Of all rounds at most the share
    L / (`explore_every_rounds` + L) are such looks, and that is what exploring can cost.
    """

    def __init__(self, config: AcceptancePolicy | CostModelPolicy) -> None:
        self._min_dwell_rounds = config.min_dwell_rounds
        self._explore_every = config.explore_every_rounds
        self._dwell = Dwell(config.min_dwell_rounds)
        self._num_steps: int | None = None
        self._rounds_without_look = 0

    @property
    def num_steps(self) -> int | None:
        """The depth in force by a wish; a look does not change it. None before the first round."""
        return self._num_steps

    def follow(self, wish: Wish) -> Decision:
        """Decide a round."""
        current, rounds_left = self._dwell.num_steps, self._dwell.rounds_left
        if rounds_left and current is not None and current <= wish.limit:
            return self._hold(wish, current, rounds_left)
        self._num_steps = wish.num_steps
        if self._is_look_due:
            deeper = next((k for k in wish.candidates if k > wish.num_steps), None)
            if deeper is not None:
                return self._look(wish, deeper)
        return self._round(wish, wish.num_steps, wish.reason)

    @property
    def _is_look_due(self) -> bool:
        return 0 < self._explore_every <= self._rounds_without_look

    def _hold(self, wish: Wish, current: int, rounds_left: int) -> Decision:
        if current != self._num_steps:
            return self._look(wish, current)
        if current == wish.num_steps:
            return self._round(wish, current, wish.reason)
        reason = held_reason(wish.running, rounds_left, self._min_dwell_rounds)
        return self._round(wish, current, reason)

    def _look(self, wish: Wish, num_steps: int) -> Decision:
        self._rounds_without_look = 0
        self._dwell.take(num_steps)
        return Decision(
            num_steps=num_steps,
            reason=f"{wish.running} running decodes: explores num_steps={num_steps}, as once in "
            f"explore_every_rounds={self._explore_every}",
        )

    def _round(self, wish: Wish, num_steps: int, reason: str) -> Decision:
        in_doubt = num_steps < wish.candidates[-1]
        self._rounds_without_look = self._rounds_without_look + 1 if in_doubt else 0
        self._dwell.take(num_steps)
        return Decision(num_steps=num_steps, reason=reason)
