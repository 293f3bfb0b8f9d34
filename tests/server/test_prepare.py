import asyncio
from typing import Any

import pytest

from specserve.errors import RequestError
from specserve.server.parse import parse_request
from specserve.server.prepare import Job, prepare_chat, prepare_completion
from specserve.server.schemas import ChatRequest, CompletionRequest
from tests.server.live import CONTEXT_LENGTH, MODEL, VOCAB_SIZE, make_plan, make_tokenizer


def prepare(**fields: Any) -> Job:  # noqa: ANN401
    asked = parse_request(CompletionRequest, {"model": MODEL, "prompt": "abc", **fields})
    return asyncio.run(
        prepare_completion(asked, request_id="r", plan=make_plan(), tokenizer=make_tokenizer())
    )


def prepare_turn(content: str = "abc", **fields: Any) -> Job:  # noqa: ANN401
    turns = [{"role": "user", "content": content}]
    asked = parse_request(ChatRequest, {"model": MODEL, "messages": turns, **fields})
    return asyncio.run(
        prepare_chat(asked, request_id="r", plan=make_plan(), tokenizer=make_tokenizer())
    )


def test_every_field_reaches_the_engine() -> None:
    [request] = prepare(
        max_tokens=7,
        temperature=0.5,
        top_p=0.9,
        top_k=4,
        min_p=0.1,
        seed=11,
        stop=["x"],
        stop_token_ids=[5],
        logit_bias={"6": -100},
        logprobs=2,
        ignore_eos=True,
        speculation=False,
    ).requests
    sampling = request.sampling

    assert (97, 98, 99) == request.prompt_token_ids
    assert (0.5, 0.9, 4, 0.1, 11, {6: -100.0}) == (
        sampling.temperature,
        sampling.top_p,
        sampling.top_k,
        sampling.min_p,
        sampling.seed,
        sampling.logit_bias,
    )
    assert (7, ("x",), (5,), 2, False, True) == (
        request.max_tokens,
        request.stop,
        request.stop_token_ids,
        request.top_logprobs,
        request.speculation,
        request.ignore_eos,
    )


def test_the_defaults_are_sixteen_tokens_and_for_a_chat_all_the_context() -> None:
    assert 16 == prepare().requests[0].max_tokens
    chat = prepare_turn()
    assert CONTEXT_LENGTH == chat.num_prompt_tokens + chat.requests[0].max_tokens


def test_a_default_gives_way_to_the_context() -> None:
    assert 2 == prepare(prompt=[1] * (CONTEXT_LENGTH - 2)).requests[0].max_tokens


def test_choices_have_seeds_and_names_of_their_own() -> None:
    requests = prepare(prompt=["a", "b"], n=2, seed=-1).requests

    assert ["r-0", "r-1", "r-2", "r-3"] == [request.request_id for request in requests]
    assert [2**63 - 1, 0] * 2 == [request.sampling.seed for request in requests]


def test_without_a_seed_every_prompt_draws_one() -> None:
    seeds = {request.sampling.seed for request in prepare(prompt=["a"] * 4).requests}

    assert 4 == len(seeds)


def test_a_prompt_counts_once_for_all_its_choices() -> None:
    assert 3 == prepare(n=3).num_prompt_tokens


@pytest.mark.parametrize(
    ("logprobs", "expected"),
    [
        ({}, None),
        ({"logprobs": False}, None),
        ({"logprobs": True}, 0),
        ({"logprobs": True, "top_logprobs": 3}, 3),
    ],
)
def test_a_chat_asks_for_alternatives_apart(logprobs: dict[str, Any], expected: int | None) -> None:
    assert expected == prepare_turn(**logprobs).requests[0].top_logprobs


@pytest.mark.parametrize("name", ["max_tokens", "max_completion_tokens"])
def test_a_chat_limit_has_two_names(name: str) -> None:
    assert 9 == prepare_turn("abc", **{name: 9}).requests[0].max_tokens
    with pytest.raises(RequestError, match="of the context's 512") as caught:
        prepare_turn("abc", **{name: CONTEXT_LENGTH})

    assert name == caught.value.param


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("prompt", {"prompt": [VOCAB_SIZE]}),
        ("prompt", {"prompt": [-1]}),
        ("prompt", {"prompt": [10**30]}),
        ("stop_token_ids", {"stop_token_ids": [VOCAB_SIZE]}),
        ("logit_bias", {"logit_bias": {str(VOCAB_SIZE): 1}}),
        ("prompt", {"prompt": [1] * CONTEXT_LENGTH}),
        ("prompt", {"prompt": "a" * CONTEXT_LENGTH}),
        ("prompt", {"prompt": "a" * 1_000_000}),
        ("max_tokens", {"max_tokens": CONTEXT_LENGTH - 2}),
        ("max_tokens", {"max_tokens": 10**30}),
        ("n", {"n": 17}),
        ("n", {"prompt": ["a"] * 17}),
        ("model", {"model": "gpt-4"}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_what_this_model_cannot_take_is_refused_by_name(param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        prepare(**fields)

    assert param == caught.value.param
    assert (404 if param == "model" else 400) == caught.value.status


def test_a_chat_beyond_the_context_is_refused() -> None:
    for content, reason in (
        ("a" * CONTEXT_LENGTH, "tokens leave no room"),
        ("a" * 1_000_000, "1000000 characters cannot fit"),
    ):
        with pytest.raises(RequestError, match=reason) as caught:
            prepare_turn(content)
        assert "messages" == caught.value.param
