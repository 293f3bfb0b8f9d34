"""Drafts that are no EAGLE-3 heads, for engine=sglang."""

from typing import Any

import pytest

from specserve.config.load import load_run
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts
from specserve.plan import Plan, SpeculationPlan, make_plan
from specserve.plan.drafters import method_of

LLAMA = ("model=llama31_8b", "model.context_length=2048", "engine=sglang", "policy=always")
DRAFT = "speculation.draft.path=/eagle-test/draft"
# What makes the recorded head a checkpoint of another method.
METHODS: dict[str, dict[str, Any]] = {
    "eagle3": {"architectures": ["LlamaForCausalLMEagle3"]},
    "eagle": {"architectures": ["LlamaForCausalLMEagle"], "draft_vocab_size": None},
    "mtp": {"architectures": ["DeepseekV3ForCausalLMNextN"], "draft_vocab_size": None},
    "standalone": {"architectures": ["LlamaForCausalLM"], "draft_vocab_size": None},
    "dflash": {"architectures": ["DFlashDraftModel"], "draft_vocab_size": None},
}
OPTION = {"eagle3": "eagle3_topk1", "eagle": "eagle_topk1"}


def _facts(h200: Facts, draft: dict[str, Any], target: dict[str, Any] | None = None) -> Facts:
    assert h200.target is not None
    assert h200.draft is not None
    config = {k: v for k, v in {**h200.draft.config, **draft}.items() if v is not None}
    return h200.model_copy(
        update={
            "draft": h200.draft.model_copy(update={"config": config}),
            "target": h200.target.model_copy(
                update={"config": {**h200.target.config, **(target or {})}}
            ),
        }
    )


def _plan(facts: Facts, *overrides: str) -> Plan:
    return make_plan(load_run([*LLAMA, *overrides]).config, facts)


def _problems(facts: Facts, *overrides: str) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        _plan(facts, *overrides)
    return list(caught.value.problems)


def _speculation(plan: Plan) -> SpeculationPlan:
    assert plan.speculation is not None
    return plan.speculation


@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_checkpoint_tells_its_method(h200: Facts, method: str) -> None:
    draft = _facts(h200, METHODS[method]).draft

    assert draft is not None
    assert method == method_of(draft)


def test_a_head_by_a_plain_models_name_is_told_by_its_vocabulary(h200: Facts) -> None:
    assert h200.draft is not None
    assert "eagle3" == method_of(h200.draft)


@pytest.mark.parametrize("kind", ["eagle", "mtp", "standalone", "dflash"])
@pytest.mark.parametrize("method", sorted(METHODS))
def test_a_method_is_never_exchanged(h200: Facts, kind: str, method: str) -> None:
    """A contradiction is refused with both names, whatever the folder is called. (A09)"""
    facts = _facts(h200, METHODS[method])
    overrides = (f"speculation={OPTION.get(kind, kind)}", DRAFT)
    if kind == method:
        plan = _plan(facts, *overrides)
        assert plan.sglang is not None
        assert kind == plan.sglang.speculation.kind
    else:
        [problem] = _problems(facts, *overrides)
        assert ("speculation.kind", kind) == (problem.key, problem.value)
        assert problem.expected.startswith(f"{method}, which the draft at ")
        assert problem.fix.startswith(f"choose speculation={OPTION.get(method, method)},")


@pytest.mark.parametrize("name", ["num_nextn_predict_layers", "mtp_num_hidden_layers"])
def test_a_target_with_draft_layers_needs_no_draft(h200: Facts, name: str) -> None:
    """The control of A02: such a target may omit the path."""
    facts = _facts(h200, {}, {name: 1})
    plan = _plan(facts, "speculation=mtp")
    told = {a.key: a.effective for a in plan.adjustments}

    assert plan.target.path == _speculation(plan).draft.path == told["speculation.draft.path"]


@pytest.mark.parametrize("layers", [0, None, "one"])
def test_a_target_without_draft_layers_needs_a_draft(h200: Facts, layers: object) -> None:
    """Else SGLang would load the target a second time, as its own draft. (A02)"""
    [problem] = _problems(_facts(h200, {}, {"num_nextn_predict_layers": layers}), "speculation=mtp")

    assert "speculation.draft.path" == problem.key


@pytest.mark.parametrize(
    ("speculation", "layers", "fix"),
    [
        ("standalone", 0, "set speculation.draft.path to a draft for standalone"),
        ("eagle_topk1", 1, "choose speculation=mtp, or set speculation.draft.path"),
    ],
)
def test_the_target_is_no_draft(h200: Facts, speculation: str, layers: int, fix: str) -> None:
    facts = _facts(h200, {}, {"num_nextn_predict_layers": layers})
    facts = facts.model_copy(update={"draft": facts.target})
    problems = _problems(facts, f"speculation={speculation}", DRAFT)

    assert any(problem.fix.startswith(fix) for problem in problems)


def test_a_draft_proposes_the_targets_ids(h200: Facts) -> None:
    facts = _facts(h200, METHODS["standalone"] | {"vocab_size": 32000})
    [problem] = _problems(facts, "speculation=standalone", DRAFT)

    assert "a draft with the target's 128256 token ids, found 32000" == problem.expected


@pytest.mark.parametrize(
    ("config", "overrides", "expected"),
    [
        ({"dflash_config": {"block_size": 8}}, (), 8),
        ({"block_size": 12}, (), 12),
        ({}, (), 16),
        ({"block_size": 12}, ("speculation.num_draft_tokens=4",), 4),
    ],
)
def test_a_block_is_the_drafts_unless_it_is_asked_otherwise(
    h200: Facts, config: dict[str, Any], overrides: tuple[str, ...], expected: int
) -> None:
    plan = _plan(_facts(h200, METHODS["dflash"] | config), "speculation=dflash", DRAFT, *overrides)
    told = {a.key: a.effective for a in plan.adjustments}

    assert (1, 1, expected) == (
        _speculation(plan).num_steps,
        _speculation(plan).topk,
        _speculation(plan).num_draft_tokens,
    )
    assert (None if overrides else expected) == told.get("speculation.num_draft_tokens")


def test_a_draft_whose_config_says_nothing_is_refused(h200: Facts) -> None:
    facts = _facts(h200, METHODS["eagle"] | {"hidden_size": None})
    [problem] = _problems(facts, "speculation=eagle_topk1", DRAFT)

    assert "hidden_size" in problem.expected


def test_n_grams_have_no_draft_to_plan(h200: Facts) -> None:
    plan = _plan(h200, "speculation=ngram")

    assert plan.speculation is None
    assert plan.sglang is not None
    assert "ngram" == plan.sglang.speculation.kind
