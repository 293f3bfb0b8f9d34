from collections.abc import Callable

import pytest

from specserve.errors import Problem
from specserve.facts import Facts
from specserve.plan import Plan

MakePlan = Callable[..., Plan]
MakeProblems = Callable[..., list[Problem]]


def test_limits_are_those_of_the_configuration(h200: Facts, plan_of: MakePlan) -> None:
    scheduler = plan_of(
        h200,
        "scheduler=sync",
        "scheduler.max_running_requests=5",
        "scheduler.max_queued_requests=6",
        "scheduler.prefill_chunk_tokens=70",
    ).scheduler

    assert ("sync", 5, 6, 70) == (
        scheduler.kind,
        scheduler.max_running_requests,
        scheduler.max_queued_requests,
        scheduler.prefill_chunk_tokens,
    )


def test_a_row_has_room_for_a_round_past_the_context(h200: Facts, plan_of: MakePlan) -> None:
    """Steps 3, verified 4, scratch 1; a tree of 8 x 4 expands 28 nodes in the draft's cache."""
    tree = ["speculation.num_steps=8", "speculation.topk=4", "speculation.num_draft_tokens=6"]

    assert 2048 + 8 + 28 + 4 == plan_of(h200, *tree).scheduler.row_tokens
    assert 2048 + 8 == plan_of(h200).scheduler.row_tokens
    assert 2048 + 8 == plan_of(h200, "speculation=off", "policy=off").scheduler.row_tokens


def test_overlap_has_a_device_thread_on_a_gpu_only(h200: Facts, plan_of: MakePlan) -> None:
    on_cpu = plan_of(h200, "engine.device=cpu", "cuda_graph=off", "scheduler=overlap")

    assert plan_of(h200, "scheduler=overlap").scheduler.device_thread
    assert not plan_of(h200, "scheduler=sync").scheduler.device_thread
    assert not on_cpu.scheduler.device_thread
    assert "scheduler.kind" in {one.key for one in on_cpu.adjustments}


def test_an_open_budget_lets_every_request_fill_its_context(h200: Facts, plan_of: MakePlan) -> None:
    assert 16 * 2048 == plan_of(h200).scheduler.max_kv_tokens


def test_a_budget_that_was_asked_for_is_kept(h200: Facts, plan_of: MakePlan) -> None:
    assert 5000 == plan_of(h200, "scheduler.max_kv_tokens=5000").scheduler.max_kv_tokens


def test_a_budget_below_an_open_context_is_refused(
    h200: Facts,
    problems_of: MakeProblems,
    plan_of: MakePlan,
    advice: Callable[..., list[list[str]]],
) -> None:
    overrides = ["model.context_length=auto", "scheduler.max_kv_tokens=1000"]

    [problem] = problems_of(h200, *overrides)

    assert "scheduler.max_kv_tokens" == problem.key
    assert 2 == len(advice(problem))
    for settings in advice(problem):
        assert plan_of(h200, *overrides, *settings).scheduler.max_kv_tokens >= 1000


def test_sglangs_open_pool_is_what_fits_beside_the_weights(h200: Facts, plan_of: MakePlan) -> None:
    plan = plan_of(h200, "engine=sglang", "scheduler.max_running_requests=4096")

    usable = int(143771 * 2**20 * 0.9)
    assert 4096 * 2048 > plan.scheduler.max_kv_tokens > 2048
    assert plan.memory.total_bytes <= usable
    per_token = (plan.memory.kv_bytes + plan.memory.draft_kv_bytes) // plan.scheduler.max_kv_tokens
    assert plan.memory.total_bytes + per_token > usable
    [reason] = [a.reason for a in plan.adjustments if a.key == "scheduler.max_kv_tokens"]
    assert reason.startswith("as many as fit beside the weights")


@pytest.mark.parametrize(("fraction", "larger"), [(0.5, False), (0.95, True)])
def test_sglangs_memory_fraction_sets_the_share(
    h200: Facts, plan_of: MakePlan, fraction: float, larger: bool
) -> None:
    overrides = ["engine=sglang", "scheduler.max_running_requests=4096"]
    usual = plan_of(h200, *overrides).scheduler.max_kv_tokens

    found = plan_of(h200, *overrides, f"engine.memory_fraction={fraction}")

    assert larger == (found.scheduler.max_kv_tokens > usual)
