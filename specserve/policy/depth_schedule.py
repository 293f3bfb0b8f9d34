"""Draft as deep as a table says for so many running decodes."""

from specserve.config.policy import DepthSchedulePolicy
from specserve.policy.depth_table import DepthTable
from specserve.policy.dwell import Dwell, held_reason
from specserve.policy.observation import Decision, Observation


class DepthSchedule:
    """The table's depth, with hysteresis and a dwell time; never deeper than `max_num_steps`."""

    def __init__(self, config: DepthSchedulePolicy, max_num_steps: int) -> None:
        self._config = config
        self._table = DepthTable(
            [
                step.model_copy(update={"num_steps": min(step.num_steps, max_num_steps)})
                for step in config.schedule
            ]
        )
        self._dwell = Dwell(config.min_dwell_rounds)

    def decide(self, observation: Observation) -> Decision:
        """The depth of the line, with the counts that decided it."""
        running, dwell, config = observation.running_decodes, self._dwell, self._config
        wanted = self._table.steady_depth(running, dwell.num_steps, config.hysteresis)
        if dwell.rounds_left and dwell.num_steps is not None and wanted != dwell.num_steps:
            wanted = dwell.num_steps
            reason = held_reason(running, dwell.rounds_left, config.min_dwell_rounds)
        else:
            reason = self._reason(running, wanted)
        dwell.take(wanted)
        return Decision(num_steps=wanted, reason=reason)

    def _reason(self, running: int, num_steps: int) -> str:
        if num_steps != self._table.depth(running):
            return (
                f"{running} running decodes: num_steps={num_steps} stays, whose line begins "
                f"within hysteresis={self._config.hysteresis}"
            )
        end = self._table.end(running)
        if end is None:
            last = self._config.schedule[-1].up_to
            return f"{running} running decodes are more than the schedule's last up_to={last}"
        return f"{running} running decodes are at most up_to={end}: num_steps={num_steps}"
