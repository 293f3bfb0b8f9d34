import json
from typing import Any

import pytest

from specserve.errors import RequestError
from specserve.server.body import parse_json_object


@pytest.mark.parametrize(
    ("body", "expected"),
    [
        (b"", "not JSON"),
        (b"{", "not JSON"),
        (b'{"a": NaN}', "NaN is no JSON number"),
        (b'{"a": -Infinity}', "-Infinity is no JSON number"),
        (b'{"a": ' + b"9" * 5000 + b"}", "not JSON"),
        (b"[]", "a JSON list, expected an object"),
        (b"null", "a JSON NoneType, expected an object"),
        (b'{"a": "\xff"}', "not UTF-8: invalid start byte at byte 7"),
        (b'{"a": "\xed\xa0\x80"}', "not UTF-8"),
        (b'{"a":' * 100_000, "nested too deeply"),
    ],
    ids=lambda value: str(value)[:24],
)
def test_what_is_no_json_object_is_refused(body: bytes, expected: str) -> None:
    with pytest.raises(RequestError, match=expected) as caught:
        parse_json_object(body)

    assert 400 == caught.value.status


@pytest.mark.parametrize(
    ("fields", "param"),
    [
        ({"prompt": "\ud800"}, "prompt"),
        ({"messages": [{"content": "a\udfff"}]}, "messages.0.content"),
        ({"\ud800": 1}, "?"),
        ({"logit_bias": {"\ud800": 1}}, "logit_bias.?"),
    ],
)
def test_half_a_surrogate_pair_is_refused_by_name(fields: dict[str, Any], param: str) -> None:
    with pytest.raises(RequestError, match="surrogate") as caught:
        parse_json_object(json.dumps(fields).encode())

    assert param == caught.value.param


def test_a_whole_surrogate_pair_is_a_character() -> None:
    assert {"prompt": "\N{GRINNING FACE}"} == parse_json_object(rb'{"prompt": "\ud83d\ude00"}')
