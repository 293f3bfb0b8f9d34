import pytest
from hypothesis import given

from specserve.config.policy import BatchThresholdPolicy, CostModelPolicy, PolicyConfig
from specserve.errors import ConfigError
from specserve.policy.build import make_policy
from specserve.policy.observation import Observation
from specserve.testing.calibrations import make_calibration
from tests.policy.loads import COST_MODELS, MAX_NUM_STEPS, POLICIES

ALONE = Observation(running_decodes=1, last_round=None, elapsed_seconds=0.0)
THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=4, resume_at=2, min_dwell_rounds=8, while_off="warm"
)


@given(config=POLICIES)
def test_every_kind_is_built(config: PolicyConfig) -> None:
    policy = make_policy(config, MAX_NUM_STEPS, make_calibration())

    kind = type(policy).__name__.casefold()
    assert config.kind.replace("_", "") == kind
    assert 0 <= policy.decide(ALONE).num_steps <= MAX_NUM_STEPS


def test_two_policies_of_one_config_share_no_state() -> None:
    first, second = make_policy(THRESHOLD, 3), make_policy(THRESHOLD, 3)
    crowd = Observation(running_decodes=9, last_round=None, elapsed_seconds=0.0)

    assert 0 == first.decide(crowd).num_steps
    assert 3 == second.decide(ALONE).num_steps


@given(config=COST_MODELS)
def test_a_cost_model_without_a_calibration_is_refused(config: CostModelPolicy) -> None:
    with pytest.raises(ConfigError, match=r"policy\.calibration='calibration\.json'"):
        make_policy(config, 3)
