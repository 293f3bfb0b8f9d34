"""Draft as deep as yields the most tokens per second, by measured round times.

The model is the goodput of SmartSpec and TurboSpec (Liu et al., 2024, arXiv:2406.14066): the
tokens that a round is expected to yield over the time that it takes.
"""

from bisect import bisect_right

from specserve.calibration.table import Calibration
from specserve.calibration.times import RoundTimes
from specserve.config.policy import CostModelPolicy
from specserve.policy.acceptance_estimate import AcceptanceEstimate
from specserve.policy.course import Course, Wish
from specserve.policy.depth_bounds import DepthBounds
from specserve.policy.observation import Decision, Observation

# Tokens per second that one request is expected to get, by depth.
_Speeds = dict[int, float]


class CostModel:
    """The best of the measured depths that the bounds allow, by their expected tokens per second.

    With n requests a round of depth k takes T(n, k) seconds, of the calibration, and yields each
    of them 1 + a_1 + … + a_k tokens, a_i being the live acceptance of draft token i, which begins
    with the calibration's. The depth in force is left for one that is better by `margin`. Depths
    that are slower than `max_inter_token_ms` are left out; if all are, the fastest one is taken.
    What exploring costs is bounded: see `Course`.
    """

    def __init__(
        self, config: CostModelPolicy, max_num_steps: int, calibration: Calibration
    ) -> None:
        measured = [depth.num_steps for depth in calibration.depths]
        self._config = config
        self._depths = [num_steps for num_steps in measured if num_steps <= max_num_steps]
        self._times = RoundTimes(calibration, self._depths)
        self._bounds = DepthBounds(config.bounds, max_num_steps)
        self._estimate = AcceptanceEstimate(calibration.acceptance, config.window_rounds)
        self._course = Course(config)

    def decide(self, observation: Observation) -> Decision:
        """A depth within the bounds, with the speeds that decided it."""
        if observation.last_round is not None:
            self._estimate.observe(observation.last_round)
        running = observation.running_decodes
        limit = self._bounds.limit(running)
        return self._course.follow(self._wish(running, limit, self._speeds(running, limit)))

    def _speeds(self, running: int, limit: int) -> _Speeds:
        allowed = self._depths[: bisect_right(self._depths, limit)]
        tokens = self._estimate.expected_tokens
        seconds = self._times.at(running)
        return {
            num_steps: tokens[num_steps] / time
            for num_steps, time in zip(allowed, seconds, strict=False)
        }

    def _wish(self, running: int, limit: int, speeds: _Speeds) -> Wish:
        best = max(speeds, key=speeds.__getitem__)
        candidates, wanted = list(speeds), best
        slowest = self._config.max_inter_token_ms
        if slowest is not None:
            candidates = [k for k, speed in speeds.items() if 1000 <= slowest * speed] or [best]
        in_force = self._course.num_steps
        if in_force in candidates and speeds[best] <= speeds[in_force] * (1 + self._config.margin):
            wanted = in_force
        return Wish(running, wanted, self._reason(running, speeds, wanted, best), limit, candidates)

    def _reason(self, running: int, speeds: _Speeds, wanted: int, best: int) -> str:
        together = max(running, 1)
        slowest = self._config.max_inter_token_ms
        if slowest is not None and slowest * speeds[best] < 1000:
            return (
                f"{running} running decodes: no depth meets max_inter_token_ms={slowest:g}, "
                f"num_steps={best} is fastest with {1000 / speeds[best]:.2f} ms"
            )
        if len(speeds) == 1:
            return f"{running} running decodes: the bounds allow no more than num_steps={wanted}"
        if wanted != best:
            return (
                f"{running} running decodes: num_steps={wanted} stays at "
                f"{together * speeds[wanted]:.0f} tokens/s, as num_steps={best} is expected to "
                f"give {together * speeds[best]:.0f}, within margin={self._config.margin:g}"
            )
        other = next(num_steps for num_steps in speeds if num_steps != best)
        is_bounded = best == max(speeds) < self._depths[-1]
        return (
            f"{running} running decodes: num_steps={best} is expected to give "
            f"{together * speeds[best]:.0f} tokens/s, num_steps={other} "
            f"{together * speeds[other]:.0f}{'; the bounds allow no more' if is_bounded else ''}"
        )
