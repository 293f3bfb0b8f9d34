from collections.abc import Callable
from typing import Any

import pytest

from specserve.checkpoint.architecture import read_dimensions
from specserve.checkpoint.header import CheckpointFacts, TensorHeader
from specserve.checkpoint.target_rules import architecture_problems, target_rules
from specserve.config.run import RunConfig
from specserve.errors import Problem

MakeRun = Callable[..., RunConfig]


def changed(facts: CheckpointFacts, **fields: Any) -> CheckpointFacts:  # noqa: ANN401
    """The facts with other fields in config.json."""
    return facts.model_copy(update={"config": facts.config | fields})


def rules(run: RunConfig, target: CheckpointFacts) -> list[Problem]:
    size = read_dimensions(target.config, key="model.path", path=target.path)
    return target_rules(run, target, size)


def test_a_sound_target_has_no_problem(make_run: MakeRun, target: CheckpointFacts) -> None:
    assert [] == architecture_problems(make_run(), target)
    assert [] == rules(make_run(), target)


def test_an_unknown_architecture_is_refused_with_the_supported_ones(
    make_run: MakeRun, target: CheckpointFacts
) -> None:
    [problem] = architecture_problems(make_run(), changed(target, architectures=["FooForCausalLM"]))

    assert "LlamaForCausalLM, MistralForCausalLM, Qwen2ForCausalLM" in problem.expected
    assert "found FooForCausalLM" in problem.expected
    assert "set model.path to a supported model" == problem.fix


def test_an_architecture_of_the_other_engine_is_refused_with_that_engine(
    make_run: MakeRun, target: CheckpointFacts
) -> None:
    deepseek = changed(target, architectures=["DeepseekV3ForCausalLM"])

    [problem] = architecture_problems(make_run(), deepseek)

    assert "set engine=sglang" == problem.fix
    assert [] == architecture_problems(make_run("engine=sglang"), deepseek)


def test_sglang_serves_an_unknown_architecture_without_a_draft_only(
    make_run: MakeRun, target: CheckpointFacts
) -> None:
    unknown = changed(target, architectures=["FooForCausalLM"])
    plain = make_run("engine=sglang", "speculation=off", "policy=off")

    assert [] == architecture_problems(plain, unknown)
    [problem] = architecture_problems(make_run("engine=sglang"), unknown)
    assert problem.fix.endswith("speculation=off policy=off")


def test_a_target_without_a_tokenizer_is_refused(
    make_run: MakeRun, target: CheckpointFacts
) -> None:
    [problem] = rules(make_run(), target.model_copy(update={"has_tokenizer": False}))

    assert "a tokenizer beside the weights" in problem.expected


@pytest.mark.parametrize(("tokenizer_vocab_size", "accepted"), [(320, True), (321, False)])
def test_the_tokenizers_ids_lie_below_the_vocabulary(
    make_run: MakeRun, target: CheckpointFacts, tokenizer_vocab_size: int, accepted: bool
) -> None:
    facts = target.model_copy(update={"tokenizer_vocab_size": tokenizer_vocab_size})

    assert accepted == (not rules(make_run(), facts))


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float64"])
def test_a_dtype_that_is_not_computed_in_is_refused_for_auto_only(
    make_run: MakeRun, target: CheckpointFacts, dtype: str
) -> None:
    facts = changed(target, dtype=dtype)

    [problem] = rules(make_run("model.dtype=auto"), facts)

    assert ("model.dtype", "set model.dtype=bfloat16") == (problem.key, problem.fix)
    assert [] == rules(make_run("model.dtype=bfloat16"), facts)


def test_missing_unexpected_and_misshapen_tensors_are_one_problem(
    make_run: MakeRun, target: CheckpointFacts
) -> None:
    tensors = dict(target.tensors or {})
    tensors.pop("model.norm.weight")
    tensors["model.more.weight"] = TensorHeader(dtype="F32", shape=(1,))
    tensors["lm_head.weight"] = TensorHeader(dtype="F32", shape=(320, 32))

    [problem] = rules(make_run(), target.model_copy(update={"tensors": tensors}))

    assert (
        "missing: model.norm.weight; unexpected: model.more.weight; of another shape: "
        "lm_head.weight [320, 32] instead of [320, 64]" in problem.expected
    )


def test_tensors_are_judged_for_the_torch_engine_only(
    make_run: MakeRun, target: CheckpointFacts
) -> None:
    """SGLang reads layouts beyond the table, and refuses them itself."""
    facts = target.model_copy(update={"tensors": {}})

    assert [] == rules(make_run("engine=sglang"), facts)
    assert 1 == len(rules(make_run(), facts))


def test_all_problems_of_a_target_are_told_at_once(
    make_run: MakeRun, target: CheckpointFacts
) -> None:
    facts = changed(target, hidden_act="gelu", quantization_config={"quant_method": "awq"})

    keys = [p.key for p in rules(make_run(), facts.model_copy(update={"has_tokenizer": False}))]

    assert ["quantization.kind", "model.path", "model.path"] == keys
