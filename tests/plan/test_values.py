from collections.abc import Callable

import pytest
from pydantic import ValidationError

from specserve.facts import Facts
from specserve.plan import Plan


@pytest.mark.parametrize(
    "overrides",
    [
        [],
        ["speculation=off", "policy=off"],
        ["speculation=eagle3_topk4", "policy=always", "scheduler=sync"],
        ["quantization=int4", "quantization.draft=inherit"],
        ["engine=sglang", "cuda_graph.batch_sizes=[1,2]"],
    ],
)
def test_a_plan_survives_json(
    h200: Facts, plan_of: Callable[..., Plan], overrides: list[str]
) -> None:
    """It crosses to the worker as JSON, so nothing in it may change on the way."""
    plan = plan_of(h200, *overrides)

    assert plan == Plan.model_validate_json(plan.model_dump_json())


def test_a_plan_is_frozen(h200: Facts, plan_of: Callable[..., Plan]) -> None:
    with pytest.raises(ValidationError, match="frozen"):
        plan_of(h200).device = "cpu"
