from collections.abc import Callable, Mapping
from typing import Any

import pytest

from specserve.checkpoint.architecture import Dimensions, read_dimensions
from specserve.checkpoint.aux_layers import AuxLayers
from specserve.checkpoint.draft_rules import (
    DraftShape,
    borrowed_tensors,
    draft_rules,
    draft_shape,
    method_problems,
)
from specserve.checkpoint.header import CheckpointFacts, TensorHeader
from specserve.config.run import RunConfig
from specserve.errors import Problem

MakeRun = Callable[..., RunConfig]
AUX = AuxLayers(ids=(2, 4, 5), convention="input", source="guess")


@pytest.fixture(scope="module")
def target_size(target: CheckpointFacts) -> Dimensions:
    return read_dimensions(target.config, key="model.path", path=target.path)


def shape_of(draft: CheckpointFacts) -> DraftShape:
    return draft_shape(draft, read_dimensions(draft.config, key="k", path=draft.path))


def changed(
    draft: CheckpointFacts,
    config: Mapping[str, Any] | None = None,
    tensors: Mapping[str, tuple[int, ...] | None] | None = None,
) -> CheckpointFacts:
    """The head with other config fields, and tensors of other shapes (None: without it)."""
    headers = dict(draft.tensors or {})
    for name, shape in (tensors or {}).items():
        headers.pop(name, None)
        if shape is not None:
            headers[name] = TensorHeader(dtype="F32", shape=shape)
    return draft.model_copy(
        update={"config": draft.config | dict(config or {}), "tensors": headers}
    )


def full_vocabulary(draft: CheckpointFacts) -> CheckpointFacts:
    head = changed(
        draft,
        {"draft_vocab_size": 320},
        {"lm_head.weight": (320, 64), "d2t": None, "t2d": None},
    )
    return head.model_copy(update={"d2t": None, "t2d": None})


def rules(run: RunConfig, draft: CheckpointFacts, size: Dimensions) -> list[Problem]:
    return draft_rules(run, draft, shape_of(draft), size, AUX)


def test_a_sound_head_has_no_problem(
    make_run: MakeRun, draft: CheckpointFacts, target: CheckpointFacts, target_size: Dimensions
) -> None:
    assert [] == method_problems(draft, target)
    assert [] == rules(make_run(), draft, target_size)
    assert ("embed_tokens",) == borrowed_tensors(draft, shape_of(draft), target_size)


def test_a_target_is_not_its_own_draft(target: CheckpointFacts) -> None:
    [problem] = method_problems(target, target)

    assert "found the target itself (LlamaForCausalLM)" in problem.expected
    assert "speculation=off policy=off" in problem.fix


@pytest.mark.parametrize("path", ["/x/eagle-test/model", "/x/model"])
def test_a_plain_model_is_refused_by_both_names_whatever_its_folder_is_called(
    draft: CheckpointFacts, target: CheckpointFacts, path: str
) -> None:
    plain = target.model_copy(update={"path": path, "sha256": "other"})

    [problem] = method_problems(plain, target)

    assert "because speculation.kind=eagle3" in problem.expected
    assert "found architecture LlamaForCausalLM" in problem.expected


def test_a_head_of_another_name_is_told_by_its_layout(
    draft: CheckpointFacts, target: CheckpointFacts
) -> None:
    """The authors' own heads call themselves LlamaForCausalLM."""
    renamed = changed(draft, {"architectures": ["LlamaForCausalLM"]})
    recorded = renamed.model_copy(update={"tensors": None})

    assert [] == method_problems(renamed, target)
    assert [] == method_problems(recorded, target)
    assert [] != method_problems(changed(renamed, tensors={"fc.weight": None}), target)


@pytest.mark.parametrize(
    ("field", "value", "expected"),
    [
        ("target_hidden_size", 128, "target_hidden_size 64, the target's hidden_size"),
        ("num_hidden_layers", 2, "num_hidden_layers 1, one layer"),
        ("vocab_size", 400, "vocab_size 320, the target's vocab_size"),
    ],
)
def test_a_head_of_another_target_is_refused_by_the_field_that_differs(
    make_run: MakeRun,
    draft: CheckpointFacts,
    target_size: Dimensions,
    field: str,
    value: int,
    expected: str,
) -> None:
    found = rules(make_run(), changed(draft, {field: value}), target_size)

    assert any(
        expected in problem.expected and f"says {value}" in problem.expected for problem in found
    )


def test_a_head_that_names_no_target_size_is_as_wide_as_its_target(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    silent = changed(draft, {"target_hidden_size": None})

    assert [] == rules(make_run(), silent, target_size)
    assert [] != rules(make_run(), changed(silent, {"hidden_size": 32}), target_size)


def test_a_narrower_head_needs_an_embedding_of_its_own(
    draft: CheckpointFacts, target_size: Dimensions
) -> None:
    narrow = shape_of(changed(draft, {"hidden_size": 32, "target_hidden_size": 64}))

    assert () == borrowed_tensors(draft, narrow, target_size)


def test_lm_head_is_borrowed_for_the_full_vocabulary(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    head = changed(full_vocabulary(draft), tensors={"lm_head.weight": None})

    assert [] == rules(make_run(), head, target_size)
    assert ("embed_tokens", "lm_head") == borrowed_tensors(head, shape_of(head), target_size)


def test_a_stored_embedding_and_lm_head_are_not_borrowed(
    draft: CheckpointFacts, target_size: Dimensions
) -> None:
    head = changed(full_vocabulary(draft), tensors={"embed_tokens.weight": (320, 64)})

    assert () == borrowed_tensors(head, shape_of(head), target_size)


def test_a_head_that_ties_its_embedding_does_not_borrow_lm_head(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    head = changed(full_vocabulary(draft), {"tie_word_embeddings": True}, {"lm_head.weight": None})

    [problem] = rules(make_run(), head, target_size)

    assert "missing: lm_head.weight" in problem.expected


def test_lm_head_of_a_reduced_vocabulary_must_be_stored(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    [problem] = rules(make_run(), changed(draft, tensors={"lm_head.weight": None}), target_size)

    assert "missing: lm_head.weight" in problem.expected
    assert "this head proposes from 128 of 320 ids" in problem.fix


def test_a_reduced_vocabulary_needs_its_map(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    [problem] = rules(make_run(), changed(draft, tensors={"d2t": None}), target_size)

    assert "missing: d2t" in problem.expected


def test_a_renamed_layer_is_told_as_missing_and_unexpected_with_the_rename(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    stored = draft.tensors or {}
    renamed = {name.replace("midlayer.", "layers.0."): header for name, header in stored.items()}

    [problem] = rules(make_run(), draft.model_copy(update={"tensors": renamed}), target_size)

    assert "missing: midlayer.hidden_norm.weight" in problem.expected
    assert "unexpected: layers.0.hidden_norm.weight" in problem.expected
    assert "rename the tensors layers.0.* to midlayer.*" in problem.fix


def test_the_torch_engine_refuses_what_it_does_not_compute(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    yarn = changed(draft, {"rope_scaling": {"type": "yarn"}})

    [problem] = rules(make_run(), yarn, target_size)

    assert "rope type default or llama3" in problem.expected
    assert [] == rules(make_run("engine=sglang"), yarn, target_size)


def test_of_a_recorded_head_the_embedding_counts_as_borrowed(
    draft: CheckpointFacts, target_size: Dimensions
) -> None:
    recorded = draft.model_copy(update={"tensors": None})

    assert ("embed_tokens",) == borrowed_tensors(recorded, shape_of(recorded), target_size)


def test_a_head_with_biases_has_them_as_its_config_says(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    biases = {
        f"midlayer.self_attn.{name}_proj.bias": (width,)
        for name, width in {"q": 64, "k": 32, "v": 32, "o": 64}.items()
    }

    assert [] == rules(make_run(), changed(draft, {"attention_bias": True}, biases), target_size)
    assert 1 == len(rules(make_run(), changed(draft, {}, biases), target_size))
    assert 1 == len(rules(make_run(), changed(draft, {"attention_bias": True}), target_size))


def test_a_head_of_another_target_is_told_so_and_nothing_else(
    make_run: MakeRun, draft: CheckpointFacts, target_size: Dimensions
) -> None:
    """Its layers and vocabulary would be counted in sizes that mean nothing here."""
    narrow = draft.model_copy(
        update={"config": {**draft.config, "target_hidden_size": 8, "vocab_size": 100}}
    )
    problems = rules(make_run(), narrow, target_size)

    assert ["SPEC602", "SPEC602"] == [problem.rule for problem in problems]
    assert {draft.path} == {problem.value for problem in problems}
