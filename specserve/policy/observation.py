"""What a policy sees and what it answers."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundCounters:
    """What came of one round, summed over the requests that it verified.

    `num_steps` is the depth that it drafted, `verified` the requests. `accepted_by_position[i]`
    counts the requests whose draft token i + 1 was accepted: it never grows with i, and has
    `num_steps` entries.
    """

    num_steps: int
    verified: int
    drafted: int
    accepted_by_position: tuple[int, ...]

    @property
    def accepted(self) -> int:
        """Accepted draft tokens."""
        return sum(self.accepted_by_position)


def count_round(num_steps: int, num_drafted: int, accepted: Sequence[int]) -> RoundCounters:
    """Counters of a round in which each verified request was offered `num_drafted` tokens.

    `accepted` holds the accepted ones of each request, at most `num_steps`.
    """
    return RoundCounters(
        num_steps=num_steps,
        verified=len(accepted),
        drafted=num_drafted * len(accepted),
        accepted_by_position=tuple(
            sum(count > position for count in accepted) for position in range(num_steps)
        ),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """One look at the engine before a round.

    `running_decodes` counts requests that decode in this step; requests in prefill do not count.
    `last_round` is the speculative round that has been settled since the last look, None if there
    was none; `elapsed_seconds` since engine start.
    """

    running_decodes: int
    last_round: RoundCounters | None
    elapsed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Decision:
    """Depth of this round; 0 is plain decoding. `reason` is one short sentence for people."""

    num_steps: int
    reason: str


class Policy(Protocol):
    """Same observations, same decisions: no I/O, no clock of its own, under 20 µs a call.

    The first decision is no switch, but like any other it holds for `min_dwell_rounds`. So there
    are at most rounds / min_dwell_rounds switches, save those that a bound forces.
    """

    def decide(self, observation: Observation) -> Decision:
        """Choose the depth of the next round."""
        ...
