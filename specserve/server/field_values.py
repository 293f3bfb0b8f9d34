"""Values that need more than a type: prompts, stops, biases, message contents."""

from typing import Any

from pydantic_core import PydanticCustomError

MAX_STOPS = 16
MIN_TEMPERATURE = 1e-4  # logits divided by less leave the range of the smaller float types

Prompt = str | tuple[int, ...]


def parse_prompts(value: object) -> tuple[Prompt, ...]:
    """A string, strings, ids, or lists of ids: one prompt or several, none of them empty."""
    several = isinstance(value, list) and not all(type(item) is int for item in value)
    prompts: list[Any] = value if several else [value]  # type: ignore[assignment]
    parsed = tuple(tuple(prompt) if isinstance(prompt, list) else prompt for prompt in prompts)
    if not all(_is_prompt(prompt) for prompt in parsed):
        expected = "a string, a list of strings, token ids, or lists of token ids; none of it empty"
        raise PydanticCustomError("prompt", f"expected {expected}")
    return parsed


def _is_prompt(value: object) -> bool:
    if isinstance(value, tuple):
        return bool(value) and all(type(token_id) is int for token_id in value)
    return isinstance(value, str) and value != ""


def parse_stops(value: object) -> tuple[str, ...]:
    """One stop string or several."""
    stops = [value] if isinstance(value, str) else value
    if (
        not isinstance(stops, list)
        or len(stops) > MAX_STOPS
        or not all(isinstance(stop, str) and stop for stop in stops)
    ):
        expected = f"a string or a list of at most {MAX_STOPS} strings; none of them empty"
        raise PydanticCustomError("stop", f"expected {expected}")
    return tuple(stops)


def parse_temperature(value: object) -> object:
    """Leaves the type to the field; refuses only what is too small to divide by."""
    if isinstance(value, int | float) and 0 < value < MIN_TEMPERATURE:
        expected = f"0 (greedy) or at least {MIN_TEMPERATURE}"
        raise PydanticCustomError("temperature", f"expected {expected}")
    return value


def parse_logit_bias(value: object) -> dict[int, float]:
    """JSON's keys are strings: token ids, as decimal numbers."""
    if not isinstance(value, dict) or not all(
        _is_token_id(key) and type(bias) in (int, float) and -100 <= bias <= 100
        for key, bias in value.items()
    ):
        expected = "an object of token ids with biases from -100 to 100"
        raise PydanticCustomError("logit_bias", f"expected {expected}")
    return {int(key): float(bias) for key, bias in value.items()}


def _is_token_id(key: str) -> bool:
    return key.isascii() and key.isdigit() and len(key) < 10


def parse_content(value: object) -> object:
    """A message's text, or its text parts, which then stand on lines of their own."""
    if not isinstance(value, list):
        return value
    for part in value:
        match part:
            case {"type": "text", "text": str()} if len(part) == 2:
                continue
            case _:
                expected = 'a string, or a list of parts with "type": "text" and a "text"'
                raise PydanticCustomError("content", f"expected {expected}")
    return "\n".join(part["text"] for part in value)
