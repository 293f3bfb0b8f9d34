from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    Bounds,
    CostModelPolicy,
    DepthSchedulePolicy,
    DepthStep,
    OffPolicy,
    PolicyConfig,
)
from specserve.errors import Problem
from specserve.facts import Facts
from specserve.plan import Plan
from specserve.plan.cuda_graphs import coverage_doubts, ladder, verify_limit

THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=16, resume_at=12, min_dwell_rounds=0, while_off="warm"
)
SCHEDULE = DepthSchedulePolicy(
    kind="depth_schedule",
    schedule=[
        DepthStep(up_to=8, num_steps=3),
        DepthStep(up_to=24, num_steps=1),
        DepthStep(up_to=48, num_steps=0),
    ],
    hysteresis=4,
    min_dwell_rounds=0,
    while_off="warm",
)
ACCEPTANCE = AcceptancePolicy(
    kind="acceptance",
    min_acceptance=0.5,
    margin=0.0,
    window_rounds=8,
    explore_every_rounds=0,
    bounds=Bounds(schedule=SCHEDULE.schedule, disable_above=32),
    min_dwell_rounds=0,
    while_off="warm",
)
COST_MODEL = CostModelPolicy(
    kind="cost_model",
    calibration="x",
    margin=0.0,
    max_inter_token_ms=None,
    window_rounds=8,
    explore_every_rounds=0,
    bounds=Bounds(schedule=[], disable_above=None),
    min_dwell_rounds=0,
    while_off="warm",
)
AT_MOST_10 = Bounds(schedule=SCHEDULE.schedule, disable_above=10)


@pytest.mark.parametrize(
    ("largest", "sizes"),
    [(1, (1,)), (2, (1, 2)), (16, (1, 2, 4, 8, 16)), (20, (1, 2, 4, 8, 16, 20))],
)
def test_the_ladder_has_powers_of_two_and_the_limit(largest: int, sizes: tuple[int, ...]) -> None:
    assert sizes == ladder(largest)


@given(largest=st.integers(1, 4096))
def test_every_admitted_batch_is_covered_at_less_than_double_its_size(largest: int) -> None:
    sizes = ladder(largest)

    assert sorted(set(sizes)) == list(sizes)
    assert all(min(s for s in sizes if s >= n) < 2 * n for n in range(1, largest + 1))


@pytest.mark.parametrize(
    ("policy", "limit"),
    [
        (OffPolicy(kind="off"), 0),
        (AlwaysPolicy(kind="always"), 64),
        (THRESHOLD, 16),
        (SCHEDULE, 24),
        (ACCEPTANCE, 24),
        (ACCEPTANCE.model_copy(update={"bounds": AT_MOST_10}), 10),
        (COST_MODEL, 64),
    ],
)
def test_verify_needs_what_the_policy_speculates_with(policy: PolicyConfig, limit: int) -> None:
    assert limit == verify_limit(policy, 64)
    assert min(limit, 8) == verify_limit(policy, 8)


def test_a_short_ladder_leaves_plain_decoding_uncovered_above_the_threshold() -> None:
    [doubt] = coverage_doubts([8, 16, 32], THRESHOLD, max_running_requests=64, num_draft_tokens=4)

    assert "plain mode needs 64 requests (64 tokens a step), 33 to 64 uncovered" in doubt.text
    assert "verify mode needs 16 requests (64 tokens a step), covered" in doubt.text
    assert "cuda_graph.batch_sizes or lower scheduler.max_running_requests" in doubt.text


def test_a_short_ladder_under_always_leaves_verify_uncovered_too() -> None:
    [doubt] = coverage_doubts(
        [8], AlwaysPolicy(kind="always"), max_running_requests=16, num_draft_tokens=4
    )

    assert "verify mode needs 16 requests (64 tokens a step), 9 to 16 uncovered" in doubt.text


@pytest.mark.parametrize("sizes", [[], [64], [1, 128]])
def test_a_ladder_that_reaches_the_limit_is_not_warned_of(sizes: list[int]) -> None:
    assert [] == coverage_doubts(sizes, THRESHOLD, max_running_requests=64, num_draft_tokens=4)


def test_on_a_gpu_auto_is_the_ladder_and_given_sizes_are_kept(
    h200: Facts, plan_of: Callable[..., Plan]
) -> None:
    assert (1, 2, 4, 8, 16) == plan_of(h200).cuda_graph_batch_sizes
    given = plan_of(h200, "cuda_graph.batch_sizes=[4,8]")
    assert (4, 8) == given.cuda_graph_batch_sizes
    assert any("9 to 16 uncovered" in warning.text for warning in given.warnings)


def test_on_a_cpu_nothing_is_captured_and_the_reason_is_kept(
    cpu: Facts, plan_of: Callable[..., Plan]
) -> None:
    plan = plan_of(cpu)

    assert () == plan.cuda_graph_batch_sizes
    assert ["a CPU has no CUDA graphs"] == [
        a.reason for a in plan.adjustments if a.key == "cuda_graph.batch_sizes"
    ]


def test_sizes_that_a_cpu_cannot_honour_are_refused(
    cpu: Facts, problems_of: Callable[..., list[Problem]], plan_of: Callable[..., Plan]
) -> None:
    [problem] = problems_of(cpu, "cuda_graph.batch_sizes=[4,8]")

    assert "set cuda_graph.batch_sizes=auto" == problem.fix
    assert () == plan_of(cpu, "cuda_graph=off", "cuda_graph.batch_sizes=[4]").cuda_graph_batch_sizes
