"""The requests, through the function that reads them."""

from typing import Any

import pytest

from specserve.errors import RequestError
from specserve.server.parse import parse_request
from specserve.server.schemas import ChatRequest, CompletionRequest, Message

TURNS = [{"role": "user", "content": "hi"}]


def completion(**fields: Any) -> CompletionRequest:  # noqa: ANN401
    return parse_request(CompletionRequest, {"model": "m", "prompt": "p", **fields})


def chat(**fields: Any) -> ChatRequest:  # noqa: ANN401
    return parse_request(ChatRequest, {"model": "m", "messages": TURNS, **fields})


def test_the_defaults_are_those_of_openai() -> None:
    asked = completion()

    assert (1.0, 1.0, 1, None, None) == (
        asked.temperature,
        asked.top_p,
        asked.n,
        asked.seed,
        asked.logprobs,
    )
    assert asked.speculation
    assert not asked.ignore_eos


def test_null_is_the_default() -> None:
    fields = dict.fromkeys(CompletionRequest.model_fields.keys() - {"model", "prompt"})

    assert completion() == completion(**fields)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("temperature", -0.1),
        ("temperature", 2.1),
        ("temperature", "1"),
        ("temperature", True),
        ("temperature", 1e-9),
        ("top_p", 0),
        ("top_p", 1.1),
        ("top_k", 0),
        ("top_k", -1),
        ("min_p", -0.1),
        ("max_tokens", 0),
        ("max_tokens", "5"),
        ("max_tokens", True),
        ("max_tokens", 5.0),
        ("n", 0),
        ("n", 129),
        ("seed", 2**63),
        ("seed", 1.0),
        ("stop", ""),
        ("stop_token_ids", [1.0]),
        ("logit_bias", {"x": 1}),
        ("logprobs", -1),
        ("logprobs", 21),
        ("logprobs", True),
        ("stream", 1),
        ("echo", "yes"),
        ("speculation", 0),
        ("ignore_eos", "false"),
        ("prompt", ""),
        ("prompt", None),
        ("model", 5),
        ("user", 5),
        ("best_of", 2),
        ("stream_options", {"include_usage": True}),
    ],
)
def test_a_wrong_value_is_refused_by_name(name: str, value: object) -> None:
    with pytest.raises(RequestError) as caught:
        completion(**{name: value})

    assert name == (caught.value.param or "").split(".")[0]
    assert str(caught.value).startswith(f"{caught.value.param}: ")


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("messages", {"messages": []}),
        ("messages", {"messages": "hi"}),
        ("messages.0.role", {"messages": [{"role": "tool", "content": "x"}]}),
        ("messages.0.content", {"messages": [{"role": "user", "content": None}]}),
        ("messages.0.content", {"messages": [{"role": "user", "content": [{"type": "audio"}]}]}),
        ("messages.0.name", {"messages": [{"role": "user", "content": "x", "name": "bob"}]}),
        ("max_completion_tokens", {"max_tokens": 1, "max_completion_tokens": 1}),
        ("top_logprobs", {"top_logprobs": 1}),
        ("top_logprobs", {"top_logprobs": 21, "logprobs": True}),
        ("logprobs", {"logprobs": 1}),
        ("stream_options.include", {"stream": True, "stream_options": {"include": True}}),
    ],
)
def test_a_wrong_chat_value_is_refused_by_name(param: str, fields: dict[str, Any]) -> None:
    with pytest.raises(RequestError) as caught:
        chat(**fields)

    assert param == caught.value.param


def test_best_of_may_say_what_n_says() -> None:
    assert 2 == completion(n=2, best_of=2).best_of


def test_an_echo_with_logprobs_would_need_the_logprobs_of_the_prompt() -> None:
    with pytest.raises(RequestError, match="not supported together") as caught:
        completion(echo=True, logprobs=1)

    assert "echo" == caught.value.param


def test_developer_is_a_newer_name_of_system() -> None:
    message = Message(role="developer", content="x")

    assert {"role": "system", "content": "x"} == message.for_template()
