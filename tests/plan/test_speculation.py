from collections.abc import Callable

import pytest

from specserve.checkpoint.header import CheckpointFacts
from specserve.config.rules import tree_capacity
from specserve.facts import Facts
from specserve.plan import Plan
from specserve.plan.values import SpeculationPlan

MakePlan = Callable[..., Plan]


def speculation(plan: Plan) -> SpeculationPlan:
    assert plan.speculation is not None
    return plan.speculation


def with_draft_ids(facts: Facts, ids: list[int]) -> Facts:
    assert facts.draft is not None
    config = facts.draft.config | {"eagle_config": {"eagle_aux_hidden_state_layer_ids": ids}}
    draft: CheckpointFacts = facts.draft.model_copy(update={"config": config})
    return facts.model_copy(update={"draft": draft})


def test_without_speculation_there_is_no_draft(h200: Facts, plan_of: MakePlan) -> None:
    assert plan_of(h200, "speculation=off", "policy=off").speculation is None


@pytest.mark.parametrize(("num_steps", "topk"), [(1, 1), (5, 1), (1, 4), (3, 4), (8, 8)])
def test_an_open_number_of_tokens_fits_the_chain_or_the_tree(
    h200: Facts, plan_of: MakePlan, num_steps: int, topk: int
) -> None:
    plan = plan_of(
        h200,
        f"speculation.num_steps={num_steps}",
        f"speculation.topk={topk}",
        "speculation.num_draft_tokens=auto",
    )

    assert 1 + num_steps * topk == speculation(plan).num_draft_tokens
    assert speculation(plan).num_draft_tokens <= tree_capacity(num_steps, topk)
    assert "speculation.num_draft_tokens" in {a.key for a in plan.adjustments}


def test_a_number_of_tokens_that_was_asked_for_is_kept(h200: Facts, plan_of: MakePlan) -> None:
    plan = plan_of(h200, "speculation=eagle3_topk4", "speculation.num_draft_tokens=6")

    assert 6 == speculation(plan).num_draft_tokens
    assert "speculation.num_draft_tokens" not in {a.key for a in plan.adjustments}


@pytest.mark.parametrize("while_off", ["warm", "skip", "refill"])
def test_while_off_is_the_policys(h200: Facts, plan_of: MakePlan, while_off: str) -> None:
    plan = plan_of(h200, f"policy.while_off={while_off}")

    assert while_off == speculation(plan).while_off


@pytest.mark.parametrize("policy", ["depth_schedule", "acceptance"])
def test_while_off_is_any_switching_policys(h200: Facts, plan_of: MakePlan, policy: str) -> None:
    plan = plan_of(h200, f"policy={policy}", "policy.while_off=warm")

    assert "warm" == speculation(plan).while_off


@pytest.mark.parametrize(
    ("overrides", "depths"),
    [
        ([], (3,)),
        (["policy=off"], (3,)),
        (["policy=depth_schedule"], (1, 3)),
        (["policy=depth_schedule", "speculation.num_steps=5"], (1, 3, 5)),
        (["policy=acceptance"], (1, 2, 3)),
        (["policy=acceptance", "policy.bounds.schedule=[{up_to:4,num_steps:1}]"], (1, 3)),
        (["policy=depth_schedule", "cuda_graph=off"], (1, 2, 3)),
    ],
)
def test_graphs_are_built_for_the_depths_that_the_policy_can_choose_and_the_deepest(
    h200: Facts, plan_of: MakePlan, overrides: list[str], depths: tuple[int, ...]
) -> None:
    assert depths == speculation(plan_of(h200, *overrides)).depths


@pytest.mark.parametrize("policy", ["off", "batch_threshold", "depth_schedule"])
def test_without_graphs_every_depth_can_be_chosen(
    cpu: Facts, plan_of: MakePlan, policy: str
) -> None:
    assert (1, 2, 3) == speculation(plan_of(cpu, f"policy={policy}")).depths


@pytest.mark.parametrize("policy", ["off", "always"])
def test_a_policy_that_never_switches_keeps_nothing_up(
    h200: Facts, plan_of: MakePlan, policy: str
) -> None:
    assert "skip" == speculation(plan_of(h200, f"policy={policy}")).while_off


def test_guessed_aux_layers_stand_in_the_plan_and_are_warned_of(
    h200: Facts, plan_of: MakePlan
) -> None:
    plan = plan_of(h200)

    assert (2, 16, 29) == speculation(plan).draft.aux_layer_inputs
    assert any("guessed [2,16,29] (input convention)" in warning.text for warning in plan.warnings)
    [adjustment] = [a for a in plan.adjustments if a.key == "speculation.draft.aux_layer_ids"]
    assert ("auto", [2, 16, 29]) == (adjustment.asked, adjustment.effective)


@pytest.mark.parametrize(
    ("convention", "inputs"), [("output", (2, 17, 29)), ("input", (1, 16, 28))]
)
def test_the_drafts_own_ids_follow_the_convention(
    h200: Facts, plan_of: MakePlan, convention: str, inputs: tuple[int, ...]
) -> None:
    facts = with_draft_ids(h200, [1, 16, 28])

    plan = plan_of(facts, f"speculation.draft.aux_layer_convention={convention}")

    assert inputs == speculation(plan).draft.aux_layer_inputs
    assert not any("guessed" in warning.text for warning in plan.warnings)


def test_the_override_that_the_warning_names_pins_the_guess(h200: Facts, plan_of: MakePlan) -> None:
    guessed = plan_of(h200)
    [warning] = [w.text for w in guessed.warnings if "guessed" in w.text]
    overrides = warning.split("pin them with ")[1].split(" ")

    pinned = plan_of(h200, *overrides)

    assert guessed.speculation == pinned.speculation
    assert not any("guessed" in warning.text for warning in pinned.warnings)


@pytest.mark.parametrize(
    ("overrides", "scheme", "group"),
    [
        (["quantization=int8"], "none", None),
        (["quantization=int8", "quantization.draft=inherit"], "int8", None),
        (["quantization=int4", "quantization.draft=inherit"], "int4", 128),
        (["quantization=int8", "quantization.draft=int4"], "int4", 32),
        (["quantization.draft=int8"], "int8", None),
    ],
)
def test_the_drafts_weights_are_held_as_its_own_setting_says(
    h200: Facts, plan_of: MakePlan, overrides: list[str], scheme: str, group: int | None
) -> None:
    plan = plan_of(h200, *overrides)

    draft = speculation(plan).draft
    assert (scheme, group) == (draft.quantization, draft.quantization_group_size)
    inherits = "quantization.draft=inherit" in overrides
    assert inherits == ("quantization.draft" in {a.key for a in plan.adjustments})
