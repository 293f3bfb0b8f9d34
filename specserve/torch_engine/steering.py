"""The policy in force, what it last decided, and since when."""

import time
from collections.abc import Callable

from specserve.config.policy import (
    AlwaysPolicy,
    BatchThresholdPolicy,
    OffPolicy,
    PolicyConfig,
    WhileOff,
)
from specserve.engine import Mode, PolicyState
from specserve.errors import ConfigError, Problem
from specserve.plan import SpeculationPlan
from specserve.policy.build import make_policy
from specserve.policy.observation import Observation


class Steering:
    """Asks the policy once a round. Raises ConfigError for a policy that was not built for."""

    def __init__(
        self,
        policy: PolicyConfig,
        speculation: SpeculationPlan | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        _refuse_unbuilt(policy, speculation)
        self._speculation = speculation
        self._clock = clock
        self._began = self._since = clock()
        self._switches = 0
        self._config = policy
        self._policy = make_policy(policy, self._max_num_steps)
        self._last_round = (0, 0)
        self._decision = self._policy.decide(self._observe(0))

    @property
    def num_steps(self) -> int:
        """The depth in force; 0 is plain decoding."""
        return self._decision.num_steps

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return Mode.SPECULATIVE if self._decision.num_steps else Mode.PLAIN

    @property
    def while_off(self) -> WhileOff:
        """What becomes of the draft's state while off: the policy's word, else the plan's."""
        if isinstance(self._config, BatchThresholdPolicy):
            return self._config.while_off
        return self._speculation.while_off if self._speculation else "skip"

    def decide(self, running_decodes: int) -> None:
        """Ask the policy for the next round."""
        before = self.mode
        self._decision = self._policy.decide(self._observe(running_decodes))
        if self.mode is not before:
            self._switches += 1
            self._since = self._clock()

    def observe_round(self, drafted: int, accepted: int) -> None:
        """Remember the last round's counters for the next decision."""
        self._last_round = (drafted, accepted)

    def replace(self, policy: PolicyConfig, running_decodes: int) -> PolicyState:
        """Put a fresh policy in force and ask it at once."""
        _refuse_unbuilt(policy, self._speculation)
        self._config = policy
        self._policy = make_policy(policy, self._max_num_steps)
        self.decide(running_decodes)
        return self.state()

    def state(self) -> PolicyState:
        """For people and metrics."""
        return PolicyState(
            policy=self._config,
            mode=self.mode,
            num_steps=self._decision.num_steps,
            reason=self._decision.reason,
            since_seconds=self._clock() - self._since,
            switches=self._switches,
        )

    @property
    def _max_num_steps(self) -> int:
        return self._speculation.num_steps if self._speculation else 0

    def _observe(self, running_decodes: int) -> Observation:
        drafted, accepted = self._last_round
        return Observation(
            running_decodes=running_decodes,
            drafted=drafted,
            accepted=accepted,
            elapsed_seconds=self._clock() - self._began,
        )


def _refuse_unbuilt(policy: PolicyConfig, speculation: SpeculationPlan | None) -> None:
    match policy:
        case OffPolicy():
            return
        case AlwaysPolicy() | BatchThresholdPolicy() if speculation is None:
            raise ConfigError([_no_draft(policy.kind)])
        case BatchThresholdPolicy(while_off="refill") if speculation.while_off != "refill":
            raise ConfigError([_no_store(speculation.while_off)])
        case BatchThresholdPolicy(resume_at=resume, disable_above=above) if resume > above:
            raise ConfigError([_inverted(resume, above)])
        case _:
            return


def _no_draft(kind: str) -> Problem:
    return Problem(
        key="policy",
        value=kind,
        expected="off, because no draft was built (speculation=off)",
        fix="set policy=off, or start with speculation=eagle3_topk1",
    )


def _no_store(built: WhileOff) -> Problem:
    return Problem(
        key="policy.while_off",
        value="refill",
        expected=f"warm or skip: built for {built}, without the features store of refill",
        fix="set policy.while_off=warm, or start with policy.while_off=refill",
    )


def _inverted(resume: int, above: int) -> Problem:
    return Problem(
        key="policy.resume_at",
        value=resume,
        expected=f"at most policy.disable_above={above}",
        fix=f"set policy.resume_at={above}",
    )
