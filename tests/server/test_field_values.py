from typing import Any

import pytest
from pydantic_core import PydanticCustomError

from specserve.server.field_values import (
    parse_content,
    parse_logit_bias,
    parse_prompts,
    parse_stops,
    parse_temperature,
)


@pytest.mark.parametrize(
    ("prompts", "value"),
    [
        (("a",), "a"),
        (("a", "b"), ["a", "b"]),
        (((1, 2),), [1, 2]),
        (((1, 2), (3,)), [[1, 2], [3]]),
        (("a", (3,)), ["a", [3]]),
    ],
)
def test_a_prompt_is_text_or_ids_one_or_several(prompts: object, value: object) -> None:
    assert prompts == parse_prompts(value)


@pytest.mark.parametrize(
    "value", ["", [], [""], [[]], [[1], []], [1, "a"], [True], [[True]], [1.0], {}, 5, [None]]
)
def test_an_empty_or_mixed_prompt_is_refused(value: object) -> None:
    with pytest.raises(PydanticCustomError, match="expected a string"):
        parse_prompts(value)


def test_one_stop_or_several() -> None:
    assert ("x",) == parse_stops("x") == parse_stops(["x"])
    assert () == parse_stops([])


@pytest.mark.parametrize("value", ["", [""], [1], 5, ["x"] * 17, {}])
def test_a_stop_that_cannot_stop_is_refused(value: object) -> None:
    with pytest.raises(PydanticCustomError, match="at most 16 strings"):
        parse_stops(value)


def test_a_temperature_is_zero_or_large_enough_to_divide_by() -> None:
    assert [0, 1e-4, 2] == [parse_temperature(value) for value in (0, 1e-4, 2)]
    with pytest.raises(PydanticCustomError, match=r"0 \(greedy\) or at least 0.0001"):
        parse_temperature(1e-30)


def test_biases_are_keyed_by_token_ids() -> None:
    assert {5: -100.0, 7: 1.5} == parse_logit_bias({"5": -100, "7": 1.5})


@pytest.mark.parametrize(
    "value", [{"a": 1}, {"-1": 1}, {"1": 101}, {"1": True}, {"1": "1"}, {"²": 1}, [], {"9" * 99: 1}]
)
def test_a_bias_that_means_nothing_is_refused(value: object) -> None:
    with pytest.raises(PydanticCustomError, match="biases from -100 to 100"):
        parse_logit_bias(value)


def test_text_parts_stand_on_lines_of_their_own() -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]

    assert "a\nb" == parse_content(parts)
    assert "a" == parse_content("a")


@pytest.mark.parametrize(
    "part",
    [
        {"type": "image_url"},
        {"type": "text"},
        {"type": "text", "text": 1},
        "a",
        5,
        {"type": "text", "text": "a", "cache": True},
    ],
)
def test_any_other_part_is_refused(part: Any) -> None:  # noqa: ANN401
    with pytest.raises(PydanticCustomError, match="a list of parts"):
        parse_content([part])
