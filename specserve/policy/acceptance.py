"""Draft as deep as the deepest token is still accepted often enough."""

from specserve.config.policy import AcceptancePolicy
from specserve.policy.acceptance_estimate import AcceptanceEstimate
from specserve.policy.course import Course, Wish
from specserve.policy.depth_bounds import DepthBounds
from specserve.policy.observation import Decision, Observation


class Acceptance:
    """The deepest depth whose last token is accepted in `min_acceptance` of the rounds.

    A depth beyond the one in force must clear that by `margin`. It begins at the deepest depth
    that the bounds allow, as if every token were accepted, and learns from there. What exploring
    costs is bounded: see `Course`.
    """

    def __init__(self, config: AcceptancePolicy, max_num_steps: int) -> None:
        self._config = config
        self._max_num_steps = max_num_steps
        self._bounds = DepthBounds(config.bounds, max_num_steps)
        self._estimate = AcceptanceEstimate([1.0] * max_num_steps, config.window_rounds)
        self._course = Course(config)

    def decide(self, observation: Observation) -> Decision:
        """A depth within the bounds, with the acceptance that decided it."""
        if observation.last_round is not None:
            self._estimate.observe(observation.last_round)
        running = observation.running_decodes
        limit = self._bounds.limit(running)
        num_steps = self._deepest(limit)
        return self._course.follow(
            Wish(
                running=running,
                num_steps=num_steps,
                reason=self._reason(running, num_steps, limit),
                limit=limit,
                candidates=range(limit + 1),
            )
        )

    def _deepest(self, limit: int) -> int:
        """The deepest depth up to `limit` that is accepted often enough."""
        needed, in_force = self._config.min_acceptance, self._course.num_steps
        known = limit if in_force is None else min(in_force, limit)
        acceptance = self._estimate.acceptance
        num_steps = 0
        while num_steps < limit:
            margin = self._config.margin if num_steps >= known else 0.0
            if acceptance[num_steps] < needed + margin:
                break
            num_steps += 1
        return num_steps

    def _reason(self, running: int, num_steps: int, limit: int) -> str:
        needed, acceptance = self._config.min_acceptance, self._estimate.acceptance
        if num_steps < limit:
            return (
                f"{running} running decodes: acceptance of draft token {num_steps + 1} is "
                f"{acceptance[num_steps]:.2f}, too little for min_acceptance={needed:g} and "
                f"margin={self._config.margin:g}: num_steps={num_steps}"
            )
        if num_steps == 0:
            return f"{running} running decodes: the bounds allow no more than num_steps=0"
        bounded = "; the bounds allow no more" if limit < self._max_num_steps else ""
        return (
            f"{running} running decodes: acceptance of draft token {num_steps} is "
            f"{acceptance[num_steps - 1]:.2f}, enough for min_acceptance={needed:g}: "
            f"num_steps={num_steps}{bounded}"
        )
