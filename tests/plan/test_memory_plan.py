import pytest
from pydantic import ValidationError

from specserve.plan import MemoryPlan

PLAN = MemoryPlan.counted(
    {"target_weights": 100, "kv": 30, "draft_kv": 3, "runtime": 7, "mapped_files": 50}
)


def test_figures_are_read_off_the_rows() -> None:
    assert (100, 0, 30, 3, 0) == (
        PLAN.target_weight_bytes,
        PLAN.draft_weight_bytes,
        PLAN.kv_bytes,
        PLAN.draft_kv_bytes,
        PLAN.feature_bytes,
    )


def test_allocated_is_part_of_what_is_needed_and_mapped_files_of_neither() -> None:
    assert 133 == PLAN.total_bytes
    assert 140 == PLAN.needed_bytes


def test_one_figure_can_be_replaced() -> None:
    assert (31, 100) == (
        PLAN.replaced("kv", 31).kv_bytes,
        PLAN.replaced("kv", 31).target_weight_bytes,
    )
    assert 30 == PLAN.kv_bytes


def test_a_memory_plan_is_frozen_and_survives_json() -> None:
    assert PLAN == MemoryPlan.model_validate_json(PLAN.model_dump_json())
    with pytest.raises(ValidationError, match="frozen"):
        PLAN.device = "other"
