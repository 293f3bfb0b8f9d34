import pytest

from specserve.config.policy import (
    AlwaysPolicy,
    BatchThresholdPolicy,
    OffPolicy,
    PolicyConfig,
)
from specserve.policy.build import make_policy
from specserve.policy.observation import Observation

ALONE = Observation(running_decodes=1, drafted=0, accepted=0, elapsed_seconds=0.0)
THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=4, resume_at=2, min_dwell_rounds=8, while_off="warm"
)


@pytest.mark.parametrize(
    ("config", "num_steps"),
    [(OffPolicy(kind="off"), 0), (AlwaysPolicy(kind="always"), 3), (THRESHOLD, 3)],
)
def test_every_kind_is_built_with_the_deepest_round(config: PolicyConfig, num_steps: int) -> None:
    assert num_steps == make_policy(config, 3).decide(ALONE).num_steps


def test_two_policies_of_one_config_share_no_state() -> None:
    first, second = make_policy(THRESHOLD, 3), make_policy(THRESHOLD, 3)
    crowd = Observation(running_decodes=9, drafted=0, accepted=0, elapsed_seconds=0.0)

    assert 0 == first.decide(crowd).num_steps
    assert 3 == second.decide(ALONE).num_steps
