"""Speculate while few requests decode: a threshold, hysteresis and a dwell time."""

from dataclasses import dataclass

from specserve.config.policy import BatchThresholdPolicy
from specserve.policy.observation import Decision, Observation


@dataclass(frozen=True, slots=True)
class _Mode:
    """The mode in force and the number of rounds for which it may not change yet."""

    speculative: bool
    rounds_to_stay: int


class BatchThreshold:
    """Off above `disable_above` running decodes; on again at `resume_at` or fewer.

    It starts on. The round of a switch counts as the first of `min_dwell_rounds`; the start is no
    switch, so the first switch may come at once.
    """

    def __init__(self, config: BatchThresholdPolicy, num_steps: int) -> None:
        self._config = config
        self._num_steps = num_steps
        self._mode = _Mode(speculative=True, rounds_to_stay=0)

    def decide(self, observation: Observation) -> Decision:
        """The built depth or 0, with the counts that decided it."""
        running = observation.running_decodes
        mode = self._mode
        wanted = self._wanted(running)
        if wanted == mode.speculative:
            self._mode = _Mode(wanted, max(mode.rounds_to_stay - 1, 0))
            return self._decision(wanted, self._reason(running))
        if mode.rounds_to_stay:
            self._mode = _Mode(mode.speculative, mode.rounds_to_stay - 1)
            held = f"the last switch holds for {mode.rounds_to_stay} more of min_dwell_rounds="
            return self._decision(
                mode.speculative,
                f"{running} running decodes; {held}{self._config.min_dwell_rounds}",
            )
        self._mode = _Mode(wanted, max(self._config.min_dwell_rounds - 1, 0))
        return self._decision(wanted, self._reason(running))

    def _wanted(self, running: int) -> bool:
        """Between the two thresholds the mode stays as it is: that is the hysteresis."""
        if self._mode.speculative:
            return running <= self._config.disable_above
        return running <= self._config.resume_at

    def _reason(self, running: int) -> str:
        above, resume = self._config.disable_above, self._config.resume_at
        if running > above:
            return f"{running} running decodes are more than disable_above={above}"
        if running <= resume:
            return f"{running} running decodes are at most resume_at={resume}"
        state = "on" if self._mode.speculative else "off"
        return (
            f"{running} running decodes lie between resume_at={resume} and "
            f"disable_above={above}: stays {state}"
        )

    def _decision(self, speculative: bool, reason: str) -> Decision:
        return Decision(num_steps=self._num_steps if speculative else 0, reason=reason)
