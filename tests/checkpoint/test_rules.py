from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest

from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.rules import check_checkpoints
from specserve.config.run import RunConfig
from specserve.errors import ConfigError, Problem

MakeRun = Callable[..., RunConfig]


def changed(facts: CheckpointFacts, **fields: Any) -> CheckpointFacts:  # noqa: ANN401
    return facts.model_copy(update={"config": facts.config | fields})


def problems(run: RunConfig, target: CheckpointFacts, draft: CheckpointFacts) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        check_checkpoints(run, target, draft)
    return list(caught.value.problems)


def test_a_sound_pair_is_understood(
    make_run: MakeRun, target: CheckpointFacts, draft: CheckpointFacts
) -> None:
    pair = check_checkpoints(make_run(), target, draft)

    assert pair.draft is not None
    assert (8, 128, (2, 4, 5)) == (
        pair.size.num_layers,
        pair.draft.shape.draft_vocab_size,
        pair.draft.aux.inputs,
    )


def test_without_speculation_the_draft_is_not_looked_at(
    make_run: MakeRun, target: CheckpointFacts, draft: CheckpointFacts
) -> None:
    run = make_run("speculation=off", "policy=off")

    assert check_checkpoints(run, target, changed(draft, hidden_size="?")).draft is None


def test_problems_of_target_draft_and_context_are_told_at_once(
    make_run: MakeRun, target: CheckpointFacts, draft: CheckpointFacts
) -> None:
    found = problems(
        make_run("model.context_length=600", "speculation.draft.aux_layer_ids=[5,2,4]"),
        target.model_copy(update={"has_tokenizer": False}),
        changed(draft, max_position_embeddings=128),
    )

    assert ["model.path", "speculation.draft.aux_layer_ids", "model.context_length"] == [
        problem.key for problem in found
    ]
    assert "set model.context_length=128" == found[-1].fix


def test_a_broken_draft_does_not_hide_its_limit(
    make_run: MakeRun, target: CheckpointFacts, draft: CheckpointFacts
) -> None:
    found = problems(
        make_run("model.context_length=400"),
        target,
        changed(draft, max_position_embeddings=256, target_hidden_size=1),
    )

    assert ["speculation.draft.path", "model.context_length"] == [p.key for p in found]


def test_an_unsupported_architecture_ends_the_checks(
    make_run: MakeRun, target: CheckpointFacts, draft: CheckpointFacts
) -> None:
    """What follows would be guesses about another kind of model."""
    [problem] = problems(make_run(), changed(target, architectures=["Foo"], vocab_size=1), draft)

    assert "found Foo" in problem.expected


def test_impossible_dimensions_of_either_are_named(
    make_run: MakeRun, target: CheckpointFacts, draft: CheckpointFacts
) -> None:
    [of_target] = problems(make_run(), changed(target, hidden_size=0), draft)
    [of_draft] = problems(make_run(), target, changed(draft, hidden_size=0))

    assert ("model.path", "speculation.draft.path") == (of_target.key, of_draft.key)


@pytest.mark.parametrize("junk", [None, [], {}, "", 0, -1, 1.5, True, "x" * 10, [[]]])
def test_no_value_of_any_config_field_gives_anything_but_config_error(
    make_run: MakeRun, target: CheckpointFacts, draft: CheckpointFacts, junk: object
) -> None:
    run = make_run("model.dtype=auto")
    extra = ("rope_scaling", "quantization_config", "eagle_config", "text_config", "sliding_window")

    for name in {*target.config, *draft.config, *extra}:
        with suppress(ConfigError):
            check_checkpoints(run, changed(target, **{name: junk}), draft)
        with suppress(ConfigError):
            check_checkpoints(run, target, changed(draft, **{name: junk}))


def test_a_problem_shows_the_path_that_was_typed(
    make_run: MakeRun, target: CheckpointFacts, draft: CheckpointFacts
) -> None:
    """A hub id or bundled:NAME, not the folder that it was found in."""
    run = make_run("model.path=some/target", "model.draft_path=some/draft")
    lacking = {"has_tokenizer": False, "path": "/cache/target"}
    foreign = {"config": {**draft.config, "target_hidden_size": 9}, "path": "/cache/draft"}
    with pytest.raises(ConfigError) as refused:
        check_checkpoints(run, target.model_copy(update=lacking), draft.model_copy(update=foreign))

    assert [("model.path", "some/target"), ("speculation.draft.path", "some/draft")] == [
        (problem.key, problem.value) for problem in refused.value.problems
    ]
