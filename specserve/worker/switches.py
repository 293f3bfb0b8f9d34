"""Switches of the policy as events: each one while they are few, counted when they are many."""

import time
from collections.abc import Callable
from dataclasses import asdict
from typing import Any

from specserve.engine import PolicyState

BURST = 50
PER_SECOND = 5.0


class SwitchReports:
    """Turns policy states, looked at after each step, into events at a bounded rate.

    A policy without dwell may switch in every round, hundreds of times a second, and each event is
    a line on the disk. After `burst` events at once there are `per_second`; of the switches in
    between only the latest is kept, and `left_out` of its event says how many were not. So the
    last event always has the depth in force, once a second has passed, and the events' `left_out`
    plus the events are all switches.
    """

    def __init__(
        self,
        *,
        burst: int = BURST,
        per_second: float = PER_SECOND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._burst = burst
        self._per_second = per_second
        self._clock = clock
        self._allowance = float(burst)
        self._refilled = clock()
        self._reported = 0

    def look(self, state: PolicyState, *, last: bool = False) -> dict[str, Any] | None:
        """The fields of an event, if there is one to tell; the `last` look tells whatever is."""
        if state.switches == self._reported or state.last_switch is None:
            return None
        now = self._clock()
        refill = (now - self._refilled) * self._per_second
        self._allowance = min(self._allowance + refill, float(self._burst))
        self._refilled = now
        if self._allowance < 1 and not last:
            return None
        self._allowance -= 1
        left_out = state.switches - self._reported - 1
        self._reported = state.switches
        return {
            "mode": state.mode.value,
            **asdict(state.last_switch),
            "switches": state.switches,
            "left_out": left_out,
        }
