import pytest
from hypothesis import given

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    CostModelPolicy,
    DepthSchedulePolicy,
    OffPolicy,
    PolicyConfig,
)
from specserve.policy.build import make_policy
from specserve.policy.reach import reachable_depths
from specserve.testing.calibrations import make_calibration
from tests.policy.loads import LOADS, MAX_NUM_STEPS, POLICIES, Moment, bounds, drive, table

CALIBRATION = make_calibration(
    round_seconds={k: [0.01] * 4 for k in (0, 2, 3, 5)}, acceptance=[0.5] * 5
)
THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=4, resume_at=2, min_dwell_rounds=8, while_off="warm"
)
SCHEDULE = DepthSchedulePolicy(
    kind="depth_schedule",
    schedule=table((1, 9), (2, 2), (3, 0), (4, 2)),
    hysteresis=0,
    min_dwell_rounds=0,
    while_off="skip",
)
ACCEPTANCE = AcceptancePolicy(
    kind="acceptance",
    min_acceptance=0.3,
    margin=0.0,
    window_rounds=4,
    explore_every_rounds=0,
    bounds=bounds((4, 2), (8, 1), disable_above=3),
    min_dwell_rounds=0,
    while_off="skip",
)
COST_MODEL = CostModelPolicy(
    kind="cost_model",
    calibration="x",
    margin=0.0,
    max_inter_token_ms=None,
    window_rounds=4,
    explore_every_rounds=0,
    bounds=bounds((4, 3)),
    min_dwell_rounds=0,
    while_off="skip",
)


@pytest.mark.parametrize(
    ("policy", "depths"),
    [
        (OffPolicy(kind="off"), ()),
        (AlwaysPolicy(kind="always"), (4,)),
        (THRESHOLD, (4,)),
        (SCHEDULE, (2, 9)),
        (ACCEPTANCE, (1, 2)),
        (ACCEPTANCE.model_copy(update={"bounds": bounds()}), (1, 2, 3, 4)),
        (COST_MODEL, (2, 3)),
        (COST_MODEL.model_copy(update={"bounds": bounds()}), (2, 3)),
    ],
)
def test_what_a_policy_can_choose(policy: PolicyConfig, depths: tuple[int, ...]) -> None:
    assert depths == reachable_depths(policy, 4, CALIBRATION)


@given(config=POLICIES, load=LOADS)
def test_no_policy_chooses_anything_else(config: PolicyConfig, load: list[Moment]) -> None:
    calibration = make_calibration()
    taken = drive(make_policy(config, MAX_NUM_STEPS, calibration), load)

    reachable = reachable_depths(config, MAX_NUM_STEPS, calibration)
    assert {decision.num_steps for decision in taken} <= {0, *reachable}
