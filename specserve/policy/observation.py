"""What a policy sees and what it answers."""

from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at the engine before a round.

    `running_decodes` counts requests that decode in this step; requests in prefill do not count.
    `drafted` and `accepted` are the last round's counters; `elapsed_seconds` since engine start.
    """

    running_decodes: int
    drafted: int
    accepted: int
    elapsed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Depth of this round; 0 is plain decoding. `reason` is one short sentence for people."""

    num_steps: int
    reason: str


class Policy(Protocol):
    """Same observations, same decisions: no I/O, no clock of its own, under 20 µs a call."""

    def decide(self, observation: Observation) -> Decision:
        """Choose the depth of the next round."""
        ...
