"""How long a depth lasts: the pace at which a policy may change its mind."""


class Dwell:
    """The depth in force, which may be changed once it has held for `min_rounds` rounds.

    The round of a switch counts as the first; a switch is any change of depth. The first depth is
    no switch, but holds like any other. A policy that only switches when `rounds_left` is 0 so
    switches in a trace at most rounds / `min_rounds` times.
    """

    def __init__(self, min_rounds: int) -> None:
        self._rounds_to_stay = max(min_rounds - 1, 0)
        self._rounds_left = 0
        self._num_steps: int | None = None

    @property
    def num_steps(self) -> int | None:
        """The depth in force; None before the first round."""
        return self._num_steps

    @property
    def rounds_left(self) -> int:
        """Rounds for which the depth in force is still to hold."""
        return self._rounds_left

    def take(self, num_steps: int) -> None:
        """This round has `num_steps`. If that is a switch, forced or not, the dwell starts anew."""
        if num_steps != self._num_steps:
            self._num_steps = num_steps
            self._rounds_left = self._rounds_to_stay
        elif self._rounds_left:
            self._rounds_left -= 1


def held_reason(running: int, rounds_left: int, min_rounds: int) -> str:
    """Why a policy does not do what it would like to."""
    return (
        f"{running} running decodes; the last switch holds for {rounds_left} more of "
        f"min_dwell_rounds={min_rounds}"
    )
