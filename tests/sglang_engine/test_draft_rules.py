from functools import partial
from typing import Any

import pytest

from specserve.errors import ConfigError, Problem
from specserve.plan import Plan
from specserve.sglang_engine.settle import settle
from specserve.sglang_engine.versions import NEWEST, SUPPORTED
from tests.sglang_engine.plans import plan_of


def _problems(plan: Plan, version: str = NEWEST) -> list[Problem]:
    try:
        settle(plan, version)
    except ConfigError as error:
        return list(error.problems)
    return []


@pytest.mark.parametrize("name", ["LlamaForCausalLM", "Eagle3LlamaForCausalLM"])
def test_a_head_by_another_name_would_be_loaded_as_another_model(name: str) -> None:
    """The name of some published heads is that of a plain Llama."""
    [problem] = _problems(plan_of("eagle3", draft={"architectures": [name]}))

    assert "speculation.draft.path" == problem.key
    assert f"found {name}" in problem.expected


@pytest.mark.parametrize(
    ("target", "version", "accepted"),
    [
        ("MiMoV2FlashForCausalLM", "0.5.17", False),
        ("Step3p5ForCausalLM", NEWEST, False),
        ("GigaChat35ForCausalLM", "0.5.20", True),
        ("GigaChat35ForCausalLM", "0.5.21", False),
        ("Glm4MoeForCausalLM", NEWEST, True),
    ],
)
def test_multi_layer_drafting_cannot_be_steered(target: str, version: str, accepted: bool) -> None:
    found = _problems(plan_of("mtp", target={"architectures": [target]}), version)
    steady = plan_of("mtp", "policy=always", target={"architectures": [target]})

    assert ([] if accepted else ["policy"]) == [problem.key for problem in found]
    assert [] == _problems(steady, version)


def test_drafting_on_a_frozen_cache_cannot_be_steered() -> None:
    gemma = {"architectures": ["Gemma4AssistantForCausalLM"]}
    found = _problems(plan_of("mtp_alone", "policy=batch_threshold", draft=gemma))

    assert ["policy"] == [problem.key for problem in found]
    assert [] == _problems(plan_of("mtp_alone", draft=gemma))


KEY = "speculation.draft.aux_layer"
DEEPSEEK = "DeepseekV3ForCausalLM"
LLAMA = "LlamaForCausalLM"


@pytest.mark.parametrize(
    ("target", "ids", "overrides", "accepted"),
    [
        (LLAMA, [1, 15, 28], (), True),
        (LLAMA, [1, 15, 28], (f"{KEY}_convention=input",), False),
        (LLAMA, [1, 15, 28], (f"{KEY}_ids=[1,15,28]",), True),
        (LLAMA, [1, 15, 28], (f"{KEY}_ids=[1,15,27]",), False),
        (LLAMA, None, (), True),
        (LLAMA, None, (f"{KEY}_ids=[2,16,29]", f"{KEY}_convention=input"), True),
        (LLAMA, None, (f"{KEY}_ids=[2,16,29]",), False),
        (DEEPSEEK, [2, 16, 29], (f"{KEY}_convention=input",), True),
        (DEEPSEEK, [2, 16, 29], (), False),
        (DEEPSEEK, [1, 15, 28], (), True),
    ],
)
def test_the_head_is_fed_from_the_layers_that_the_plan_says(
    target: str, ids: list[int] | None, overrides: tuple[str, ...], accepted: bool
) -> None:
    head: dict[str, Any] = {"eagle_config": {"eagle_aux_hidden_state_layer_ids": ids}}
    pair = partial(plan_of, target={"architectures": [target]}, draft=head if ids else {})
    found = _problems(pair("eagle3", *overrides))

    assert ([] if accepted else ["speculation.draft.aux_layer_ids"]) == [p.key for p in found]
    for problem in found:
        [first, _] = problem.fix.split(", or ")
        settings = first.removeprefix("set ").split()
        assert [] == _problems(pair("eagle3", *overrides, *settings))


@pytest.mark.parametrize("version", SUPPORTED)
def test_the_kimi_experiment_feeds_its_head_as_planned(version: str) -> None:
    plan = settle(plan_of("kimi"), version).plan

    assert plan.speculation is not None
    assert (2, 30, 58) == plan.speculation.draft.aux_layer_inputs


def test_ids_that_only_specserve_would_find_need_another_file() -> None:
    """SGLang looks into eagle_config alone."""
    draft = {"eagle_aux_hidden_state_layer_ids": [0, 3, 9], "eagle_config": None}
    [problem] = _problems(plan_of("eagle3", draft=draft))

    assert problem.fix.startswith("set speculation.draft.path to a copy")
