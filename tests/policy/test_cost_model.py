from collections.abc import Mapping, Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.calibration.goodput import expected_tokens
from specserve.calibration.times import RoundTimes
from specserve.config.policy import Bounds, CostModelPolicy
from specserve.policy.cost_model import CostModel
from specserve.testing.calibrations import make_calibration
from tests.policy.loads import NO_BOUNDS, Moment, bounds, drive

# One request: 100, 141, 160, 170 tokens/s at depths 0 … 3. Many: plain decoding wins.
CALIBRATION = make_calibration(
    batch_sizes=[1, 101],
    round_seconds={0: [0.01, 0.01], 1: [0.012, 0.022], 2: [0.014, 0.034], 3: [0.0152, 0.0452]},
    acceptance=[0.7, 0.55, 0.34],
)


def make(
    *,
    margin: float = 0.0,
    max_inter_token_ms: float | None = None,
    explore_every_rounds: int = 0,
    min_dwell_rounds: int = 0,
    limits: Bounds = NO_BOUNDS,
    max_num_steps: int = 3,
    window_rounds: int = 4,
) -> CostModel:
    config = CostModelPolicy(
        kind="cost_model",
        calibration="calibration.json",
        margin=margin,
        max_inter_token_ms=max_inter_token_ms,
        window_rounds=window_rounds,
        explore_every_rounds=explore_every_rounds,
        bounds=limits,
        min_dwell_rounds=min_dwell_rounds,
        while_off="skip",
    )
    return CostModel(config, max_num_steps, CALIBRATION)


def depths(policy: CostModel, load: Sequence[Moment]) -> list[int]:
    return [decision.num_steps for decision in drive(policy, load)]


def tokens_per_second(running: int) -> Mapping[int, float]:
    seconds = RoundTimes(CALIBRATION, range(4)).at(running)
    tokens = expected_tokens(CALIBRATION.acceptance)
    return {k: running * tokens[k] / seconds[k] for k in range(4)}


@given(running=st.integers(1, 300))
def test_the_first_round_is_the_best_by_the_calibration_alone(running: int) -> None:
    speeds = tokens_per_second(running)

    assert max(speeds.values()) == speeds[depths(make(), [Moment(running)])[0]]


def test_deep_for_one_and_plain_for_many() -> None:
    assert [3, 0, 3] == depths(make(), [Moment(1), Moment(101), Moment(1)])


def test_a_depth_that_was_not_built_or_not_measured_is_never_taken() -> None:
    assert [2] == depths(make(max_num_steps=2), [Moment(1)])
    assert [3] == depths(make(max_num_steps=16), [Moment(1)])


def test_it_learns_that_the_draft_is_worse_than_the_file_says() -> None:
    assert 0 == depths(make(), [Moment(1, 0.0)] * 50)[-1]


def test_it_learns_that_the_draft_is_better_than_the_file_says() -> None:
    """At 60 the file has plain decoding ahead; with a draft that is always right it is not."""
    load = [Moment(60, 1.0)] * 100

    assert 0 == depths(make(), load)[0]
    assert 3 == depths(make(explore_every_rounds=8), load)[-1]


def test_the_depth_in_force_is_left_for_one_that_is_better_by_the_margin() -> None:
    """Coming from 3, depth 2 is 3.5 % better at 25: it depends on the margin."""
    at_25 = tokens_per_second(25)
    gain = at_25[2] / at_25[3] - 1
    load = [Moment(1), Moment(25)]
    learned = 1_000_000  # so that the rounds of the test teach nothing

    assert [3, 2] == depths(make(margin=gain * 0.9, window_rounds=learned), load)
    assert [3, 3] == depths(make(margin=gain * 1.1, window_rounds=learned), load)


def test_bounds_hold_within_a_dwell() -> None:
    policy = make(limits=bounds((4, 3), (8, 1)), min_dwell_rounds=6)

    assert [3, 1, 0, 0] == depths(policy, [Moment(n, 1.0) for n in (4, 5, 9, 1)])


def test_a_margin_does_not_keep_a_depth_that_misses_the_latency_target() -> None:
    """3 is in force, and at 40 gives a token every 10.4 ms; depth 1 gives one every 9.4 ms."""
    load = [Moment(1), Moment(40)]
    learned = 1_000_000

    assert [3, 3] == depths(make(margin=0.5, window_rounds=learned), load)
    assert [3, 1] == depths(make(margin=0.5, window_rounds=learned, max_inter_token_ms=10.1), load)


def test_no_look_at_what_misses_the_latency_target() -> None:
    load = [Moment(101, 0.7)] * 20

    assert 1 in depths(make(explore_every_rounds=4), load)
    assert [0] * 20 == depths(make(explore_every_rounds=4, max_inter_token_ms=11), load)


def test_if_no_depth_meets_the_latency_target_the_fastest_is_taken() -> None:
    decision = drive(make(max_inter_token_ms=1.0), [Moment(1)])[0]

    assert 3 == decision.num_steps
    assert (
        "1 running decodes: no depth meets max_inter_token_ms=1, num_steps=3 is fastest with "
        "5.87 ms" == decision.reason
    )


def test_an_idle_engine_gets_the_depth_for_one_request() -> None:
    assert [3] == depths(make(), [Moment(0)])


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (
            [Moment(1)],
            "1 running decodes: num_steps=3 is expected to give 170 tokens/s, num_steps=0 100",
        ),
        (
            [Moment(101)],
            "101 running decodes: num_steps=0 is expected to give 10100 tokens/s, num_steps=1 7805",
        ),
        (
            [Moment(2)],
            "2 running decodes: num_steps=1 is expected to give 281 tokens/s, num_steps=0 200; "
            "the bounds allow no more",
        ),
        ([Moment(200)], "200 running decodes: the bounds allow no more than num_steps=0"),
        (
            [Moment(1), Moment(40)],
            "40 running decodes: num_steps=3 stays at 3851 tokens/s, as num_steps=1 is expected "
            "to give 4277, within margin=0.5",
        ),
    ],
)
def test_the_reason_has_the_numbers(load: list[Moment], reason: str) -> None:
    limits = bounds((1, 3), (2, 1), (150, 3))
    policy = make(limits=limits, margin=0.5, window_rounds=1_000_000)

    assert reason == drive(policy, load)[-1].reason
