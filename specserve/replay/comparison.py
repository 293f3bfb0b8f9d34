"""Policies side by side over one load, with the yardsticks."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from specserve.calibration.table import Calibration
from specserve.errors import ConfigError, Problem
from specserve.policy.reach import reachable_depths
from specserve.replay.candidates import Candidate
from specserve.replay.costs import Costs
from specserve.replay.oracle import oracle, static
from specserve.replay.outcome import Outcome
from specserve.replay.run import replay
from specserve.replay.trace import Trace
from specserve.rule_ids import RuleId


@dataclass(frozen=True, slots=True, kw_only=True)
class Replayed:
    """One policy and what came of it."""

    candidate: Candidate
    outcome: Outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """`statics` by depth, 0 being plain decoding. `seed` is that of what the policies saw."""

    trace: Trace
    calibration: Calibration
    calibration_path: str
    seed: int
    policies: tuple[Replayed, ...]
    statics: Mapping[int, Outcome]
    oracle: Outcome

    @property
    def best(self) -> Replayed:
        """The policy with the most tokens per second; of equal ones the first."""
        return max(self.policies, key=lambda one: one.outcome.tokens_per_second)

    @property
    def best_static(self) -> int:
        """The depth that would have been best to have all the time."""
        return max(self.statics, key=lambda depth: self.statics[depth].tokens_per_second)

    def of_oracle(self, outcome: Outcome) -> float:
        """Tokens per second as a share of the oracle's."""
        return outcome.tokens_per_second / self.oracle.tokens_per_second


def common_costs(calibration: Calibration, candidates: Sequence[Candidate]) -> Costs:
    """Rounds of all depths that some candidate builds.

    Raises ConfigError if one can take a depth that was not measured.
    """
    costs = Costs(calibration, max(candidate.num_steps for candidate in candidates))
    problems = [p for candidate in candidates for p in _not_measured(candidate, costs)]
    if problems:
        raise ConfigError(problems)
    return costs


def compare(
    trace: Trace,
    candidates: Sequence[Candidate],
    costs: Costs,
    *,
    calibration: Calibration,
    calibration_path: str,
    seed: int,
    advanced: Callable[[float], object],
) -> Comparison:
    """Replay every candidate. `advanced` is told the simulated seconds as they pass."""
    return Comparison(
        trace=trace,
        calibration=calibration,
        calibration_path=calibration_path,
        seed=seed,
        policies=tuple(
            Replayed(
                candidate=candidate,
                outcome=replay(trace, candidate.policy(), costs, seed=seed, advanced=advanced),
            )
            for candidate in candidates
        ),
        statics={depth: static(trace, costs, depth) for depth in costs.depths},
        oracle=oracle(trace, costs),
    )


def _not_measured(candidate: Candidate, costs: Costs) -> Iterator[Problem]:
    policy = candidate.config.policy
    reached = reachable_depths(policy, candidate.num_steps, candidate.calibration)
    lacking = sorted(set(reached) - set(costs.depths))
    if lacking:
        measured = ", ".join(map(str, costs.depths))
        yield Problem(
            rule=RuleId.CALIBRATION_LACKS_DEPTHS,
            key="policy",
            value=candidate.name,
            expected=f"depths that --calibration has ({measured}), but it can take {lacking}",
            fix=f"set speculation.num_steps={max(costs.depths)} and keep the policy to measured "
            "depths, or calibrate the others",
        )
