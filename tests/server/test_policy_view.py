import asyncio

from specserve.server.policy_control import PolicyControl
from specserve.server.policy_view import bounds, policy_view
from tests.server.live import make_engine, make_plan


def test_the_bounds_are_what_was_built() -> None:
    assert {
        "depths": [1, 2, 3],
        "while_off": ["warm", "skip"],
        "max_running_requests": 8,
        "calibration": None,
    } == bounds(make_plan())


def test_refill_is_offered_only_where_it_was_built() -> None:
    plan = make_plan()
    assert plan.speculation is not None
    refill = plan.speculation.model_copy(update={"while_off": "refill"})

    assert "refill" in bounds(plan.model_copy(update={"speculation": refill}))["while_off"]


def test_without_a_draft_there_is_nothing_to_choose() -> None:
    found = bounds(make_plan().model_copy(update={"speculation": None}))

    assert ([], []) == (found["depths"], found["while_off"])


def test_the_view_has_the_policy_in_force_and_the_runs_own() -> None:
    plan = make_plan()
    control = PolicyControl(plan.policy, lambda kind, fields: None, start=1)
    state = asyncio.run(make_engine().stats()).policy
    view = policy_view(state, control, plan)

    assert {"kind": "always"} == view["policy"] == view["own_policy"]
    assert (None, "1-0", 3, 0) == (
        view["pinned"],
        view["version"],
        view["num_steps"],
        view["switches"],
    )
    assert "policy always" in view["reason"]
