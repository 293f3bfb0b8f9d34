"""What a round of each depth takes and yields, by the calibration."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from specserve.calibration.goodput import expected_tokens
from specserve.calibration.table import Calibration
from specserve.calibration.times import RoundTimes


@dataclass(frozen=True, slots=True)
class Round:
    """Seconds that one round of the batch takes, and tokens that its requests may expect of it."""

    seconds: float
    tokens: float

    @property
    def rate(self) -> float:
        """Expected tokens per second: the goodput of TurboSpec (Liu et al., arXiv:2406.14066)."""
        return self.tokens / self.seconds


class Costs:
    """Rounds of every depth up to `max_num_steps` that was measured; depth 0 is plain decoding."""

    def __init__(self, calibration: Calibration, max_num_steps: int) -> None:
        measured = (depth.num_steps for depth in calibration.depths)
        self.depths = tuple(depth for depth in measured if depth <= max_num_steps)
        self._times = RoundTimes(calibration, self.depths)

    def rounds(self, running_decodes: int, acceptance: Sequence[float]) -> Mapping[int, Round]:
        """The round of each depth with `running_decodes` (1 or more) requests.

        `acceptance[i]` is the chance that draft token i + 1 is accepted, for every draft token of
        the deepest depth.
        """
        tokens = expected_tokens(acceptance)
        seconds = self._times.at(running_decodes)
        return {
            depth: Round(time, running_decodes * tokens[depth])
            for depth, time in zip(self.depths, seconds, strict=True)
        }


def best_depth(rounds: Mapping[int, Round]) -> int:
    """The depth with the most tokens per second; of equal ones the shallowest."""
    return max(sorted(rounds), key=lambda depth: rounds[depth].rate)
