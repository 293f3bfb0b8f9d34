from collections.abc import Callable
from typing import Any

import pytest

from specserve.errors import Problem
from specserve.facts import Facts
from specserve.plan import Plan

MakePlan = Callable[..., Plan]
MakeProblems = Callable[..., list[Problem]]


def stored(facts: Facts, target: str, draft: str) -> Facts:
    """The facts with other stored types."""
    return changed(facts, {"torch_dtype": target}, {"torch_dtype": draft})


def changed(facts: Facts, target: dict[str, Any], draft: dict[str, Any] | None = None) -> Facts:
    """The facts with other fields in the two config.json."""
    pair = {"target": (facts.target, target), "draft": (facts.draft, draft or {})}
    return facts.model_copy(
        update={
            role: checkpoint.model_copy(update={"config": checkpoint.config | fields})
            for role, (checkpoint, fields) in pair.items()
            if checkpoint is not None
        }
    )


def generation(facts: Facts, **fields: object) -> Facts:
    """The facts with another generation_config.json."""
    assert facts.target is not None
    target = facts.target.model_copy(update={"generation_config": fields})
    return facts.model_copy(update={"target": target})


def reasons(plan: Plan, key: str) -> list[str]:
    return [adjustment.reason for adjustment in plan.adjustments if adjustment.key == key]


def test_a_model_without_a_name_is_called_after_its_path_and_a_name_stays(
    h200: Facts, plan_of: MakePlan
) -> None:
    after_path = plan_of(h200)
    elsewhere = plan_of(h200, "model.path=/models/mine/")
    named = plan_of(h200, "model.path=/models/mine", "model.name=ours")

    assert ["Llama-3.1-8B-Instruct", "mine", "ours"] == [
        plan.target.name for plan in (after_path, elsewhere, named)
    ]
    assert ["from model.path=/models/mine"] == reasons(elsewhere, "model.name")
    assert [] == reasons(named, "model.name")


FLOAT32_ON_CPU = "on a CPU float16 is no faster than float32, and it overflows"


@pytest.mark.parametrize(
    ("asked", "target", "draft", "on_gpu", "on_cpu"),
    [
        ("auto", "bfloat16", "float16", "bfloat16", "bfloat16"),
        ("auto", "bfloat16", "bfloat16", "bfloat16", "bfloat16"),
        ("auto", "float16", "bfloat16", "float16", "float32"),
        ("auto", "float32", "bfloat16", "float32", "float32"),
        ("float32", "bfloat16", "float16", "float32", "float32"),
        ("bfloat16", "float32", "float32", "bfloat16", "bfloat16"),
        ("float16", "bfloat16", "bfloat16", "float16", "float16"),
    ],
)
def test_one_activation_type_holds_for_target_and_draft(
    h200: Facts,
    cpu: Facts,
    plan_of: MakePlan,
    asked: str,
    target: str,
    draft: str,
    on_gpu: str,
    on_cpu: str,
) -> None:
    for facts, expected in ((h200, on_gpu), (cpu, on_cpu)):
        plan = plan_of(stored(facts, target, draft), f"model.dtype={asked}")

        assert plan.speculation is not None
        assert (expected, expected) == (plan.target.dtype, plan.speculation.draft.dtype)
        for role, kind in (("target", target), ("draft", draft)):
            cast = f"the {role} is stored in {kind} and is cast"
            assert (kind != expected) == (cast in ";".join(reasons(plan, "model.dtype")))


def test_the_rule_for_float16_on_a_cpu_is_stated(cpu: Facts, plan_of: MakePlan) -> None:
    auto = plan_of(stored(cpu, "float16", "float16"), "model.dtype=auto")
    kept = plan_of(cpu, "model.dtype=float16")

    assert FLOAT32_ON_CPU in reasons(auto, "model.dtype")[0]
    assert "float16" == kept.target.dtype
    assert any("model.dtype=float16 on a CPU" in warning.text for warning in kept.warnings)


def test_a_type_that_both_are_stored_in_needs_no_adjustment_when_asked_for(
    h200: Facts, plan_of: MakePlan
) -> None:
    plan = plan_of(stored(h200, "bfloat16", "bfloat16"), "model.dtype=bfloat16")

    assert [] == reasons(plan, "model.dtype")


def test_an_open_context_is_the_tightest_limit(h200: Facts, plan_of: MakePlan) -> None:
    speculative = plan_of(h200, "model.context_length=auto")
    plain = plan_of(
        changed(h200, {"max_position_embeddings": 4096}),
        "model.context_length=auto",
        "speculation=off",
        "policy=off",
    )

    assert (2048, 4096) == (speculative.target.context_length, plain.target.context_length)
    assert ["the draft's max_position_embeddings 2048"] == reasons(
        speculative, "model.context_length"
    )


def test_a_context_that_was_asked_for_is_kept_or_refused(
    h200: Facts, plan_of: MakePlan, problems_of: MakeProblems
) -> None:
    assert 1000 == plan_of(h200, "model.context_length=1000").target.context_length
    [problem] = problems_of(h200, "model.context_length=2049")
    assert ("model.context_length", "set model.context_length=2048") == (problem.key, problem.fix)


@pytest.mark.parametrize(
    ("of_generation", "of_config", "ids"),
    [
        ([5, 6], 7, (5, 6, 7)),
        (5, 5, (5,)),
        (None, [7, 8], (7, 8)),
        (5, None, (5,)),
        (None, None, ()),
        (True, "5", ()),
    ],
)
def test_stop_ids_come_from_both_files_each_once(
    h200: Facts, plan_of: MakePlan, of_generation: object, of_config: object, ids: tuple[int, ...]
) -> None:
    facts = generation(h200, eos_token_id=of_generation)

    plan = plan_of(changed(facts, {"eos_token_id": of_config}))

    assert ids == plan.target.eos_token_ids
    assert (not ids) == any("names no eos_token_id" in warning.text for warning in plan.warnings)


def test_quantizing_needs_torchao(
    h200: Facts, problems_of: MakeProblems, plan_of: MakePlan
) -> None:
    versions = {name: text for name, text in h200.versions.items() if name != "torchao"}
    without = h200.model_copy(update={"versions": versions})

    [of_target] = problems_of(without, "quantization=int8")
    [of_draft] = problems_of(without, "quantization.draft=int8")

    assert ("quantization.kind", "quantization.draft") == (of_target.key, of_draft.key)
    assert "pip install 'specserve[quantization]'" in of_target.fix
    assert "int8" == plan_of(h200, "quantization=int8").target.quantization


def test_the_group_size_is_kept_where_there_are_groups(h200: Facts, plan_of: MakePlan) -> None:
    assert 128 == plan_of(h200, "quantization=int4").target.quantization_group_size
    assert plan_of(h200, "quantization=int8").target.quantization_group_size is None


def test_the_architecture_is_told_by_its_short_name(h200: Facts, plan_of: MakePlan) -> None:
    assert "llama" == plan_of(h200).target.architecture


def test_int4_on_a_gpu_is_computed_in_bfloat16(
    h200: Facts, plan_of: MakePlan, problems_of: MakeProblems
) -> None:
    [problem] = problems_of(h200, "quantization=int4", "model.dtype=float32")

    assert "set model.dtype=bfloat16" == problem.fix
    assert plan_of(h200, "quantization=int8", "model.dtype=float32").target.dtype == "float32"


@pytest.mark.parametrize("capability", ["7.5", "8.0"])
def test_int4_needs_a_gpu_with_its_kernel(
    h200: Facts, plan_of: MakePlan, problems_of: MakeProblems, capability: str
) -> None:
    gpu = h200.machine.gpus[0].model_copy(update={"compute_capability": capability})
    machine = h200.machine.model_copy(update={"gpus": (gpu,)})
    facts = h200.model_copy(update={"machine": machine})

    if capability == "8.0":
        assert "int4" == plan_of(facts, "quantization=int4").target.quantization
        return
    [of_target] = problems_of(facts, "quantization=int4")
    [of_draft] = problems_of(facts, "quantization.draft=int4")
    assert ("quantization.kind", "set quantization=int8") == (of_target.key, of_target.fix)
    assert ("quantization.draft", "set quantization.draft=int8") == (of_draft.key, of_draft.fix)
    assert "compute capability is 7.5" in of_target.expected


def test_int4_on_a_gpu_that_is_not_there_is_told_as_that(
    cpu: Facts, problems_of: MakeProblems
) -> None:
    found = problems_of(cpu, "quantization=int4", "engine.device=cuda")

    assert ["engine.device"] == [problem.key for problem in found]


# A fix must divide what the refused group divides: 64 divides 3072, but not every multiple of 96.
@pytest.mark.parametrize(
    ("group_size", "on_cpu", "on_gpu"),
    [(256, 128, 256), (96, 32, 32), (192, 64, 64), (128, 128, 128)],
)
def test_int4_has_groups_that_the_device_has_a_kernel_for(
    h200: Facts,
    cpu: Facts,
    plan_of: MakePlan,
    problems_of: MakeProblems,
    group_size: int,
    on_cpu: int,
    on_gpu: int,
) -> None:
    facts = changed(
        h200, {"hidden_size": 3072, "intermediate_size": 3072, "num_attention_heads": 24}
    )
    overrides = ["quantization=int4", "speculation=off", "policy=off"]
    for machine, advised in ((cpu.machine, on_cpu), (h200.machine, on_gpu)):
        here = facts.model_copy(update={"machine": machine})
        asked = [*overrides, f"quantization.group_size={group_size}"]
        if advised != group_size:
            [problem] = problems_of(here, *asked)
            assert f"set quantization.group_size={advised}" == problem.fix
        plan = plan_of(here, *asked, f"quantization.group_size={advised}")

        assert advised == plan.target.quantization_group_size
