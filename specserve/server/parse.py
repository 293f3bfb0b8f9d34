"""The body's fields -> a checked request, or an error that names the field."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Any, TypeVar

from pydantic import ValidationError

from specserve.errors import RequestError
from specserve.server.schemas import GenerationFields

Request = TypeVar("Request", bound=GenerationFields)


def parse_request(schema: type[Request], fields: Mapping[str, Any]) -> Request:
    """The request, with null as the default. Raises RequestError (400) naming the field."""
    asked = {}
    for name, value in fields.items():
        if name in schema.model_fields:
            if value is not None:
                asked[name] = value
        elif name in schema.neutral_values:
            _refuse_unless_neutral(name, value, schema.neutral_values[name])
        else:
            raise RequestError(_unknown(name, schema), param=name)
    try:
        return schema.model_validate(asked)
    except ValidationError as error:
        raise _validation_error(error) from error


def _validation_error(error: ValidationError) -> RequestError:
    """Every problem that pydantic found, in one message; `param` is the first one's field."""
    found = [
        (".".join(map(str, problem["loc"])), problem["msg"])
        for problem in error.errors(include_url=False, include_input=False)
    ]
    message = "; ".join(f"{name}: {_lower_first(problem)}" for name, problem in found)
    return RequestError(message, param=found[0][0])


def _refuse_unless_neutral(name: str, value: object, neutral: tuple[object, ...]) -> None:
    if value is None or any(
        type(value) is type(nothing) and value == nothing for nothing in neutral
    ):
        return
    message = f"{name}: this server does not support it; leave it out or set it to null"
    raise RequestError(message, param=name)


def _unknown(name: str, schema: type[GenerationFields]) -> str:
    close = get_close_matches(name, schema.model_fields, n=1)
    hint = f"; did you mean {close[0]}?" if close else ""
    return f"{name}: unknown field{hint}"


def _lower_first(text: str) -> str:
    return text[:1].lower() + text[1:]
