"""PolicyConfig -> Policy."""

from typing import assert_never

from specserve.config.policy import (
    AlwaysPolicy,
    BatchThresholdPolicy,
    OffPolicy,
    PolicyConfig,
)
from specserve.policy.batch_threshold import BatchThreshold
from specserve.policy.fixed import Always, Off
from specserve.policy.observation import Policy


def make_policy(config: PolicyConfig, max_num_steps: int) -> Policy:
    """A fresh policy whose depths are 0 … `max_num_steps`, the deepest round that was built."""
    match config:
        case OffPolicy():
            return Off()
        case AlwaysPolicy():
            return Always(max_num_steps)
        case BatchThresholdPolicy():
            return BatchThreshold(config, max_num_steps)
        case _:
            assert_never(config)
