"""One policy over one load, round by round, in simulated time."""

from collections.abc import Callable

from specserve.policy.observation import Decision, Observation, Policy, RoundCounters
from specserve.replay.costs import Costs
from specserve.replay.draws import Draws
from specserve.replay.outcome import Outcome, Tally
from specserve.replay.trace import Span, Trace


def replay(
    trace: Trace, policy: Policy, costs: Costs, *, seed: int, advanced: Callable[[float], object]
) -> Outcome:
    """What `policy` (a fresh one) would have done, and the tokens that it could expect.

    A round begins with the requests that the trace has then, takes what the calibration says, and
    earns its expected tokens; the last round may end after the trace. While nothing decodes there
    are no rounds. As in the engine, the policy is also asked, with 0 running decodes, when the
    first request reaches an idle engine.

    What the policy sees of a round is drawn by the true acceptance (`seed`), so that it has to
    live with chance as it would in the field; what it earns is not left to chance. A switch costs
    nothing beside what its rounds take. `advanced` is told the seconds of every span that is done.
    `costs` must have every depth that the policy can take.
    """
    engine = _SimulatedEngine(policy, costs, Draws(seed))
    for span in trace.spans:
        engine.decode(span)
        advanced(span.seconds)
    return engine.tally.outcome()


class _SimulatedEngine:
    """The clock, the last round and what has come together so far."""

    def __init__(self, policy: Policy, costs: Costs, draws: Draws) -> None:
        self.tally = Tally()
        self._policy = policy
        self._costs = costs
        self._draws = draws
        self._clock = 0.0
        self._is_idle = True
        self._last_round: RoundCounters | None = None

    def decode(self, span: Span) -> None:
        """All rounds that begin in `span`; none if the last one lasts beyond it."""
        running = span.running_decodes
        if running == 0:
            self._is_idle = True
            return
        if self._clock >= span.end:
            return
        self._clock = max(self._clock, span.begin)
        if self._is_idle:
            self._decide(0)
            self._is_idle = False
        rounds = self._costs.rounds(running, span.acceptance)
        while self._clock < span.end:
            num_steps = self._decide(running).num_steps
            self.tally.add(num_steps, rounds[num_steps], 1)
            self._clock += rounds[num_steps].seconds
            if num_steps:
                self._last_round = self._draws.verify(running, num_steps, span.acceptance)

    def _decide(self, running_decodes: int) -> Decision:
        last_round, self._last_round = self._last_round, None
        decision = self._policy.decide(
            Observation(
                running_decodes=running_decodes,
                last_round=last_round,
                elapsed_seconds=self._clock,
            )
        )
        self.tally.enter(self._clock, running_decodes, decision.num_steps, decision.reason)
        return decision
