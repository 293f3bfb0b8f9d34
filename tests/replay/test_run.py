"""Replays of real policies, and of one that writes down what it was asked."""

import pytest

from specserve.calibration.table import Calibration
from specserve.config.policy import BatchThresholdPolicy, Bounds, CostModelPolicy
from specserve.policy.build import make_policy
from specserve.policy.fixed import Always, Off
from specserve.policy.observation import Decision, Observation
from specserve.replay.costs import Costs
from specserve.replay.generators import SHAPES, Shape, ShapeName, default_period, generate
from specserve.replay.oracle import oracle, static
from specserve.replay.outcome import Outcome
from specserve.replay.run import replay
from specserve.replay.trace import Row, Trace, hold

ACCEPTANCE = (0.7, 0.49, 0.343)
THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=16, resume_at=14, min_dwell_rounds=8, while_off="skip"
)
COST_MODEL = CostModelPolicy(
    kind="cost_model",
    calibration="given",
    margin=0.02,
    max_inter_token_ms=None,
    window_rounds=32,
    explore_every_rounds=400,
    bounds=Bounds(schedule=[], disable_above=None),
    min_dwell_rounds=8,
    while_off="skip",
)


class Asked:
    """Drafts 3 steps in every other round, and keeps what it was shown."""

    def __init__(self) -> None:
        self.seen: list[Observation] = []

    def decide(self, observation: Observation) -> Decision:
        self.seen.append(observation)
        return Decision(num_steps=3 * (len(self.seen) % 2), reason=f"look {len(self.seen)}")


def constant(running: int, seconds: float) -> Trace:
    rows = [(0.0, running), (seconds, 0)]
    return hold([Row(time=t, running_decodes=n, acceptance=ACCEPTANCE) for t, n in rows], "here")


def made_up(name: ShapeName, low: int = 1, high: int = 128) -> Trace:
    period = default_period(name, 20.0)
    shape = Shape(name=name, low=low, high=high, seconds=20.0, period=period, seed=0)
    return generate(shape, ACCEPTANCE)


def run(
    trace: Trace, policy: BatchThresholdPolicy | CostModelPolicy, table: Calibration
) -> Outcome:
    fresh = make_policy(policy, 3, table)
    return replay(trace, fresh, Costs(table, 3), seed=0, advanced=lambda _: None)


@pytest.mark.parametrize("depth", [0, 3])
def test_a_policy_that_never_changes_earns_what_the_formula_says(
    calibration: Calibration, depth: int
) -> None:
    """n (1 + a_1 + … + a_k) / T(n, k), whatever the load lasts."""
    policy = Always(3) if depth else Off()
    outcome = replay(
        constant(16, 1.0), policy, Costs(calibration, 3), seed=0, advanced=lambda _: None
    )
    seconds = 0.005 + 0.0007 * depth + 0.0001 * max(16 * (depth + 1) - 32, 0)

    assert pytest.approx(16 * (1 + sum(ACCEPTANCE[:depth])) / seconds) == outcome.tokens_per_second
    assert pytest.approx(1 / seconds, abs=1) == outcome.rounds
    assert [depth] == list(outcome.by_depth)


@pytest.mark.parametrize("name", SHAPES)
def test_replayed_always_is_the_static_setting(calibration: Calibration, name: ShapeName) -> None:
    trace, costs = made_up(name), Costs(calibration, 3)
    replayed = replay(trace, Always(3), costs, seed=0, advanced=lambda _: None)
    setting = static(trace, costs, 3)

    assert pytest.approx(setting.tokens, rel=1e-3) == replayed.tokens
    assert pytest.approx(setting.tokens_per_second, rel=1e-3) == replayed.tokens_per_second


def test_the_same_trace_and_seed_give_the_same_decisions(calibration: Calibration) -> None:
    trace = made_up("diurnal")

    assert run(trace, COST_MODEL, calibration) == run(trace, COST_MODEL, calibration)


@pytest.mark.parametrize("policy", [THRESHOLD, COST_MODEL], ids=lambda policy: policy.kind)
@pytest.mark.parametrize("name", SHAPES)
def test_a_dwell_bounds_the_switches(
    calibration: Calibration, name: ShapeName, policy: BatchThresholdPolicy | CostModelPolicy
) -> None:
    outcome = run(made_up(name, 12, 20), policy, calibration)

    assert len(outcome.switches) <= outcome.rounds / policy.min_dwell_rounds


@pytest.mark.parametrize("name", SHAPES)
def test_a_cost_model_with_the_true_times_is_close_to_the_oracle(
    calibration: Calibration, name: ShapeName
) -> None:
    trace = made_up(name)
    best = oracle(trace, Costs(calibration, 3))
    share = run(trace, COST_MODEL, calibration).tokens_per_second / best.tokens_per_second

    assert 0.97 <= share <= 1.001


def test_a_policy_sees_the_load_the_time_and_the_last_speculative_round(
    calibration: Calibration,
) -> None:
    policy = Asked()
    outcome = replay(
        constant(4, 0.02), policy, Costs(calibration, 3), seed=0, advanced=lambda _: None
    )
    # The first look is that of an idle engine; then depth 0, 3, 0, … by turns.
    assert [0, 4, 4, 4, 4] == [look.running_decodes for look in policy.seen]
    assert pytest.approx([0, 0, 0.005, 0.0121, 0.0171]) == [
        look.elapsed_seconds for look in policy.seen
    ]
    assert [None, None, None, (3, 4), None] == [
        look.last_round and (look.last_round.num_steps, look.last_round.verified)
        for look in policy.seen
    ]
    assert (4, 4) == (outcome.rounds, len(outcome.switches))


def test_nothing_is_asked_while_nothing_decodes_but_once_when_work_returns(
    calibration: Calibration,
) -> None:
    policy = Asked()
    rows = [(0.0, 0), (5.0, 2), (5.001, 0), (9.0, 1), (9.001, 0)]
    trace = hold([Row(time=t, running_decodes=n, acceptance=ACCEPTANCE) for t, n in rows], "here")
    outcome = replay(trace, policy, Costs(calibration, 3), seed=0, advanced=lambda _: None)

    assert [(0, 5.0), (2, 5.0), (0, 9.0), (1, 9.0)] == [
        (look.running_decodes, look.elapsed_seconds) for look in policy.seen
    ]
    assert 2 == outcome.rounds


def test_a_round_that_outlasts_a_span_leaves_less_of_the_next(calibration: Calibration) -> None:
    rows = [(0.0, 1), (0.001, 2), (0.004, 3), (0.006, 0)]
    trace = hold([Row(time=t, running_decodes=n, acceptance=ACCEPTANCE) for t, n in rows], "here")
    outcome = replay(trace, Off(), Costs(calibration, 0), seed=0, advanced=lambda _: None)

    assert pytest.approx(0.01) == outcome.seconds
    assert 4 == outcome.tokens


def test_progress_adds_up_to_the_trace(calibration: Calibration) -> None:
    told: list[float] = []
    trace = made_up("bursts")
    replay(trace, Off(), Costs(calibration, 3), seed=0, advanced=told.append)

    assert pytest.approx(trace.seconds) == sum(told)
