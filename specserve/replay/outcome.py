"""What came of one policy, or of a setting that never changes, over one load."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from specserve.replay.costs import Round


@dataclass(frozen=True, slots=True, kw_only=True)
class Stay:
    """Rounds of one depth in a row: begun at `begin` seconds with `running_decodes` requests.

    `reason` is why the depth was taken, in the policy's words.
    """

    begin: float
    running_decodes: int
    num_steps: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """What the rounds of one depth add up to."""

    rounds: int
    seconds: float
    tokens: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """All rounds of a load. `seconds` are those in rounds: idle time is not in them."""

    by_depth: Mapping[int, Share]
    stays: tuple[Stay, ...]

    @property
    def rounds(self) -> int:
        """How often a depth was chosen."""
        return sum(share.rounds for share in self.by_depth.values())

    @property
    def seconds(self) -> float:
        """Time in rounds."""
        return sum(share.seconds for share in self.by_depth.values())

    @property
    def tokens(self) -> float:
        """Expected tokens of all requests."""
        return sum(share.tokens for share in self.by_depth.values())

    @property
    def tokens_per_second(self) -> float:
        """Expected tokens per second in which anything decoded."""
        return self.tokens / self.seconds

    @property
    def switches(self) -> Sequence[tuple[Stay, Stay]]:
        """Every change of depth: the stay before and the one after."""
        return list(pairwise(self.stays))


class Tally:
    """Adds up rounds as they come."""

    def __init__(self) -> None:
        self._rounds: dict[int, int] = {}
        self._seconds: dict[int, float] = {}
        self._tokens: dict[int, float] = {}
        self._stays: list[Stay] = []
        self._num_steps: int | None = None

    def enter(self, begin: float, running_decodes: int, num_steps: int, reason: str) -> None:
        """At `begin` the depth is `num_steps`; a stay begins if it was another one before."""
        if num_steps != self._num_steps:
            self._num_steps = num_steps
            self._stays.append(
                Stay(
                    begin=begin,
                    running_decodes=running_decodes,
                    num_steps=num_steps,
                    reason=reason,
                )
            )

    def add(self, num_steps: int, one: Round, count: int) -> None:
        """`count` equal rounds."""
        self._rounds[num_steps] = self._rounds.get(num_steps, 0) + count
        self._seconds[num_steps] = self._seconds.get(num_steps, 0.0) + count * one.seconds
        self._tokens[num_steps] = self._tokens.get(num_steps, 0.0) + count * one.tokens

    def outcome(self) -> Outcome:
        """What has come together."""
        return Outcome(
            by_depth={
                depth: Share(
                    rounds=self._rounds[depth],
                    seconds=self._seconds[depth],
                    tokens=self._tokens[depth],
                )
                for depth in sorted(self._rounds)
            },
            stays=tuple(self._stays),
        )
