from typing import Any

import pytest

from specserve.checkpoint.architecture import EngineName
from specserve.checkpoint.context import context_limits, context_problems, sliding_window

TARGET = {"max_position_embeddings": 4096}


def tightest(
    target: dict[str, Any], draft: dict[str, Any] | None = None, engine: EngineName = "torch"
) -> int:
    return context_limits(engine, target, draft)[0].tokens


def test_the_draft_limits_the_context_too() -> None:
    assert 2048 == tightest(TARGET, {"max_position_embeddings": 2048})
    assert 4096 == tightest(TARGET, {"max_position_embeddings": 8192})
    assert 4096 == tightest(TARGET)


def test_a_draft_without_a_usable_limit_sets_none() -> None:
    assert 4096 == tightest(TARGET, {"max_position_embeddings": "long"})


@pytest.mark.parametrize(("engine", "tokens"), [("torch", 1024), ("sglang", 4096)])
def test_a_sliding_window_is_a_limit_where_attention_is_full(
    engine: EngineName, tokens: int
) -> None:
    assert tokens == tightest(TARGET | {"sliding_window": 1024}, engine=engine)


@pytest.mark.parametrize(
    ("config", "window"),
    [
        ({}, None),
        ({"sliding_window": None}, None),
        ({"sliding_window": 128}, 128),
        ({"sliding_window": 128, "use_sliding_window": True}, 128),
        ({"sliding_window": 128, "use_sliding_window": False}, None),
        ({"text_config": {"sliding_window": 128}}, 128),
        ({"sliding_window": 0}, None),
    ],
)
def test_a_window_counts_unless_the_config_switches_it_off(
    config: dict[str, Any], window: int | None
) -> None:
    assert window == sliding_window(config)


def test_the_problem_names_the_tightest_limit_and_the_value_that_fits() -> None:
    limits = context_limits("torch", TARGET, {"max_position_embeddings": 2048})

    [problem] = context_problems(8192, limits)

    assert "at most 2048, the draft's max_position_embeddings 2048" == problem.expected
    assert "set model.context_length=2048" == problem.fix
    assert [] == context_problems(2048, limits)
