from typing import Any

import pytest

from specserve.errors import RequestError
from specserve.server.parse import parse_request
from specserve.server.schemas import ChatRequest, CompletionRequest, GenerationFields

MINIMAL: dict[type[GenerationFields], dict[str, Any]] = {
    CompletionRequest: {"model": "m", "prompt": "p"},
    ChatRequest: {"model": "m", "messages": [{"role": "user", "content": "hi"}]},
}
UNSUPPORTED = [(schema, name) for schema in MINIMAL for name in sorted(schema.neutral_values)]


def test_an_unknown_field_is_refused_with_the_nearest_name() -> None:
    with pytest.raises(RequestError, match="unknown field; did you mean max_tokens") as caught:
        parse_request(CompletionRequest, {**MINIMAL[CompletionRequest], "max_token": 1})

    assert "max_token" == caught.value.param


def test_an_unknown_field_is_refused_even_if_null() -> None:
    with pytest.raises(RequestError, match=r"^zzz: unknown field$"):
        parse_request(CompletionRequest, {**MINIMAL[CompletionRequest], "zzz": None})


@pytest.mark.parametrize(("schema", "name"), UNSUPPORTED)
def test_an_unsupported_field_may_be_neutral_and_nothing_else(
    schema: type[GenerationFields], name: str
) -> None:
    plain = parse_request(schema, MINIMAL[schema])
    for neutral in (None, *schema.neutral_values[name]):
        assert plain == parse_request(schema, {**MINIMAL[schema], name: neutral})
    with pytest.raises(RequestError, match="does not support it") as caught:
        parse_request(schema, {**MINIMAL[schema], name: "something"})

    assert name == caught.value.param


def test_false_is_no_zero() -> None:
    with pytest.raises(RequestError, match="presence_penalty"):
        parse_request(CompletionRequest, {**MINIMAL[CompletionRequest], "presence_penalty": False})


def test_all_problems_come_at_once_and_the_first_one_is_the_param() -> None:
    fields = {**MINIMAL[CompletionRequest], "n": 0, "top_p": 7}
    with pytest.raises(RequestError, match=r"n: .*; top_p: ") as caught:
        parse_request(CompletionRequest, fields)

    assert "n" == caught.value.param
