"""The engine's totals since start."""

from dataclasses import dataclass, field

from specserve.engine import EngineStats, Mode, PolicyState
from specserve.policy.observation import RoundCounters
from specserve.torch_engine.admission import Admission


@dataclass(slots=True, kw_only=True)
class Totals:
    """Counters that only grow; the loop is their only owner. Fields as in `EngineStats`."""

    accepted_by_position: list[int]
    drafted: int = 0
    accepted: int = 0
    emitted: int = 0
    verify_rounds: int = 0
    plain_steps: int = 0
    draft_calls: int = 0
    draft_upkeep_calls: int = 0
    verify_calls: int = 0
    prefill_tokens: int = 0
    seconds_by_mode: dict[str, float] = field(default_factory=lambda: dict.fromkeys(Mode, 0.0))
    emitted_by_mode: dict[str, int] = field(default_factory=lambda: dict.fromkeys(Mode, 0))

    def count_round(self, counters: RoundCounters) -> None:
        """A speculative round."""
        self.drafted += counters.drafted
        self.accepted += counters.accepted
        self.verify_rounds += counters.verified
        for position, accepted in enumerate(counters.accepted_by_position):
            self.accepted_by_position[position] += accepted

    def count_emitted(self, mode: Mode, num_tokens: int) -> None:
        """Tokens that a request got."""
        self.emitted += num_tokens
        self.emitted_by_mode[mode] += num_tokens

    def stats(
        self,
        *,
        admission: Admission,
        running_decodes: int,
        total_slots: int,
        policy: PolicyState,
    ) -> EngineStats:
        """A snapshot, together with what runs now."""
        return EngineStats(
            drafted=self.drafted,
            accepted=self.accepted,
            emitted=self.emitted,
            verify_rounds=self.verify_rounds,
            plain_steps=self.plain_steps,
            draft_calls=self.draft_calls,
            draft_upkeep_calls=self.draft_upkeep_calls,
            verify_calls=self.verify_calls,
            prefill_tokens=self.prefill_tokens,
            accepted_by_position=tuple(self.accepted_by_position),
            seconds_by_mode={str(mode): value for mode, value in self.seconds_by_mode.items()},
            emitted_by_mode={str(mode): value for mode, value in self.emitted_by_mode.items()},
            running=admission.num_running,
            running_decodes=running_decodes,
            queued=admission.num_queued,
            free_slots=admission.free_tokens,
            total_slots=total_slots,
            policy=policy,
        )
