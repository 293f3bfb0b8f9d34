"""The policy in force, what it last decided, and since when."""

import time
from collections.abc import Callable

from specserve.calibration.table import Calibration
from specserve.config.policy import CostModelPolicy, PolicyConfig, SwitchingPolicy, WhileOff
from specserve.engine import Mode, PolicyState, PolicySwitch
from specserve.plan import SpeculationPlan
from specserve.policy.build import make_policy
from specserve.policy.observation import Observation, RoundCounters
from specserve.torch_engine.built import Built, refuse_unbuilt


class Steering:
    """Asks the policy once a round. Raises ConfigError for a policy that was not built for.

    A switch is a change of depth; those that a new policy makes count as well.
    """

    def __init__(
        self,
        policy: PolicyConfig,
        speculation: SpeculationPlan | None,
        calibration: Calibration | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        path = policy.calibration if isinstance(policy, CostModelPolicy) else None
        self._built = Built(speculation, calibration, path)
        refuse_unbuilt(policy, self._built)
        self._clock = clock
        self._began = self._since = clock()
        self._switches = 0
        self._last_switch: PolicySwitch | None = None
        self._num_decisions = 0
        self._config = policy
        self._policy = make_policy(policy, self._built.num_steps, calibration)
        self._last_round: RoundCounters | None = None
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
        if isinstance(self._config, SwitchingPolicy):
            return self._config.while_off
        return self._built.while_off

    def decide(self, running_decodes: int) -> None:
        """Ask the policy for the next round."""
        before = self.num_steps
        observation = self._observe(running_decodes)
        self._decision = self._policy.decide(observation)
        if self.num_steps != before:
            self._switches += 1
            self._since = self._clock()
            self._last_switch = PolicySwitch(
                from_num_steps=before,
                to_num_steps=self.num_steps,
                running_decodes=running_decodes,
                reason=self._decision.reason,
                round=self._num_decisions,
                elapsed_seconds=observation.elapsed_seconds,
            )

    def observe_round(self, counters: RoundCounters) -> None:
        """A speculative round has been settled: the next decision sees it, and only that one."""
        self._last_round = counters

    def replace(self, policy: PolicyConfig, running_decodes: int) -> PolicyState:
        """Put a fresh policy in force and ask it at once."""
        refuse_unbuilt(policy, self._built)
        self._config = policy
        self._policy = make_policy(policy, self._built.num_steps, self._built.calibration)
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
            last_switch=self._last_switch,
        )

    def _observe(self, running_decodes: int) -> Observation:
        self._num_decisions += 1
        last_round, self._last_round = self._last_round, None
        return Observation(
            running_decodes=running_decodes,
            last_round=last_round,
            elapsed_seconds=self._clock() - self._began,
        )
