"""The policy of a scripted engine: asked once a round, replaced within what it was built for."""

import time

from specserve.config.policy import PolicyConfig
from specserve.config.policy_rules import depth_problems, value_problems
from specserve.engine import Mode, PolicyState, PolicySwitch
from specserve.errors import ConfigError
from specserve.policy.build import make_policy
from specserve.policy.observation import Observation, RoundCounters


class ScriptedPolicy:
    """Real decisions on made-up rounds. Raises ConfigError for depths beyond `num_steps`."""

    def __init__(self, config: PolicyConfig, num_steps: int) -> None:
        self._config = config
        self._deepest = num_steps
        self._policy = make_policy(config, num_steps)
        self._began = self._since = time.monotonic()
        self._last_round: RoundCounters | None = None
        self._last_switch: PolicySwitch | None = None
        self._num_decisions = 0
        self._num_switches = 0
        self._decision = self._policy.decide(self._observe(0))

    @property
    def num_steps(self) -> int:
        """The depth in force; 0 is plain decoding."""
        return self._decision.num_steps

    @property
    def mode(self) -> Mode:
        """The mode in force."""
        return Mode.SPECULATIVE if self.num_steps else Mode.PLAIN

    def follow(self, running_decodes: int) -> None:
        """Decide the next round."""
        before, observation = self.num_steps, self._observe(running_decodes)
        self._decision = self._policy.decide(observation)
        if self.num_steps == before:
            return
        self._since = time.monotonic()
        self._num_switches += 1
        self._last_switch = PolicySwitch(
            from_num_steps=before,
            to_num_steps=self.num_steps,
            running_decodes=running_decodes,
            reason=self._decision.reason,
            round=self._num_decisions,
            elapsed_seconds=observation.elapsed_seconds,
        )

    def observe(self, counters: RoundCounters) -> None:
        """What the next decision sees of the last round."""
        self._last_round = counters

    def replace(self, config: PolicyConfig, running_decodes: int) -> PolicyState:
        """Another policy, from the next round on."""
        problems = [*value_problems(config), *depth_problems(config, self._deepest)]
        if problems:
            raise ConfigError(problems)
        self._policy = make_policy(config, self._deepest)
        self._config = config
        self.follow(running_decodes)
        return self.state()

    def state(self) -> PolicyState:
        """For people and metrics."""
        return PolicyState(
            policy=self._config,
            mode=self.mode,
            num_steps=self.num_steps,
            reason=self._decision.reason,
            since_seconds=time.monotonic() - self._since,
            switches=self._num_switches,
            last_switch=self._last_switch,
        )

    def _observe(self, running_decodes: int) -> Observation:
        last_round, self._last_round = self._last_round, None
        self._num_decisions += 1
        return Observation(
            running_decodes=running_decodes,
            last_round=last_round,
            elapsed_seconds=time.monotonic() - self._began,
        )
