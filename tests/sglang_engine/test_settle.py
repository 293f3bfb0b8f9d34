import pytest

from specserve.errors import ConfigError
from specserve.rule_ids import RuleId
from specserve.sglang_engine.settle import server_arguments, settle
from specserve.sglang_engine.versions import NEWEST
from tests.sglang_engine.plans import plan_of


def test_the_plan_keeps_what_it_said_and_gains_what_sglang_decides() -> None:
    plan = plan_of("eagle3")
    settled = settle(plan, NEWEST)
    before = len(plan.adjustments)

    assert plan.adjustments == settled.plan.adjustments[:before]
    assert len(settled.plan.adjustments) > before
    assert plan.speculation == settled.plan.speculation


def test_the_arguments_alone_are_those_of_the_settled_plan() -> None:
    plan = plan_of("eagle3")

    assert settle(plan, "0.5.17").arguments == server_arguments(plan, "0.5.17")


def test_all_problems_are_told_at_once() -> None:
    plan = plan_of(
        "eagle3",
        "engine.kv_cache_dtype=fp8_e5m2",
        "cuda_graph.batch_sizes=[1,64]",
        "engine.extra_args={port: 1}",
    )

    with pytest.raises(ConfigError) as caught:
        settle(plan, NEWEST)

    assert ["engine.extra_args.port", "engine.kv_cache_dtype", "cuda_graph.batch_sizes"] == [
        problem.key for problem in caught.value.problems
    ]


def test_another_release_is_refused_unless_it_is_allowed_and_then_doubted() -> None:
    allowed = plan_of("off", "engine.allow_untested_version=true")

    with pytest.raises(ConfigError, match=r"0\.5\.17 to 0\.5\.23, found 0\.5\.24"):
        settle(plan_of("off"), "0.5.24")
    doubts = settle(allowed, "0.5.24").plan.warnings
    assert RuleId.UNTESTED_VERSION in {doubt.rule for doubt in doubts}


def test_where_sglang_is_not_installed_the_newest_is_planned_for() -> None:
    assert NEWEST == settle(plan_of("off"), None).arguments.release


def test_a_plan_for_another_engine_has_no_arguments() -> None:
    plan = plan_of("off").model_copy(update={"engine": "torch", "sglang": None})

    with pytest.raises(ValueError, match="engine=torch"):
        settle(plan, NEWEST)
