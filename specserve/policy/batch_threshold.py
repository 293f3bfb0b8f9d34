"""Speculate while few requests decode: a threshold, hysteresis and a dwell time."""

from specserve.config.policy import BatchThresholdPolicy
from specserve.policy.dwell import Dwell, held_reason
from specserve.policy.observation import Decision, Observation


class BatchThreshold:
    """Off above `disable_above` running decodes; on again at `resume_at` or fewer.

    The first round follows `disable_above` alone. Like any other, the mode that it takes lasts at
    least `min_dwell_rounds` rounds, the round that takes it included.
    """

    def __init__(self, config: BatchThresholdPolicy, num_steps: int) -> None:
        self._config = config
        self._num_steps = num_steps
        self._dwell = Dwell(config.min_dwell_rounds)

    def decide(self, observation: Observation) -> Decision:
        """The built depth or 0, with the counts that decided it."""
        running, dwell = observation.running_decodes, self._dwell
        wanted = self._num_steps if self._wants_speculation(running) else 0
        if dwell.rounds_left and dwell.num_steps is not None and wanted != dwell.num_steps:
            wanted = dwell.num_steps
            reason = held_reason(running, dwell.rounds_left, self._config.min_dwell_rounds)
        else:
            reason = self._reason(running, wanted)
        dwell.take(wanted)
        return Decision(num_steps=wanted, reason=reason)

    def _wants_speculation(self, running: int) -> bool:
        """Between the two thresholds the mode stays as it is: that is the hysteresis."""
        is_off = self._dwell.num_steps == 0
        return running <= (self._config.resume_at if is_off else self._config.disable_above)

    def _reason(self, running: int, wanted: int) -> str:
        above, resume = self._config.disable_above, self._config.resume_at
        if running > above:
            return f"{running} running decodes are more than disable_above={above}"
        if running <= resume:
            return f"{running} running decodes are at most resume_at={resume}"
        return (
            f"{running} running decodes lie between resume_at={resume} and "
            f"disable_above={above}: stays {'on' if wanted else 'off'}"
        )
