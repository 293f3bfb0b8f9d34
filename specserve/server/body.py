"""Read a request's body: bounded, UTF-8, one JSON object."""

import asyncio
import json
from typing import Any, NoReturn

from starlette.requests import ClientDisconnect, Request

from specserve.errors import RequestError
from specserve.server.error_response import ClientGone

# A client that is still sending would miss an early 413, so the rest is read and dropped, up to:
_DISCARD_SECONDS = 5.0
_DISCARD_BYTES = 64 * 1024 * 1024


async def read_json_object(request: Request, max_bytes: int) -> dict[str, Any]:
    """The body's fields. Raises RequestError: 413 for too many bytes, 400 for no JSON object."""
    try:
        body = await _read(request, max_bytes)
    except ClientDisconnect as error:
        raise ClientGone from error
    return parse_json_object(body)


def parse_json_object(body: bytes) -> dict[str, Any]:
    """JSON as the standard has it (no NaN, no infinity). Raises RequestError (400)."""
    try:
        fields = json.loads(body.decode("utf-8"), parse_constant=_refuse_constant)
    except UnicodeDecodeError as error:
        message = f"the body is not UTF-8: {error.reason} at byte {error.start}"
        raise RequestError(message, param=None) from error
    except RecursionError as error:
        raise RequestError("the body's JSON is nested too deeply", param=None) from error
    except ValueError as error:
        raise RequestError(f"the body is not JSON: {error}", param=None) from error
    if not isinstance(fields, dict):
        message = f"the body is a JSON {type(fields).__name__}, expected an object"
        raise RequestError(message, param=None)
    if b"\\u" in body:  # only an escape can smuggle half a character into valid UTF-8
        _refuse_lone_surrogates(fields)
    return fields


def _refuse_lone_surrogates(fields: dict[str, Any]) -> None:
    rest: list[tuple[str, object]] = list(fields.items())
    while rest:
        path, value = rest.pop()
        if isinstance(value, dict):
            rest += ((f"{path}.{key}", item) for key, item in value.items())
        elif isinstance(value, list):
            rest += ((f"{path}.{index}", item) for index, item in enumerate(value))
        if not _is_unicode(path) or (isinstance(value, str) and not _is_unicode(value)):
            param = path.encode(errors="replace").decode()
            raise RequestError(f"{param}: holds half of a surrogate pair", param=param)


def _is_unicode(text: str) -> bool:
    return not any("\ud800" <= character <= "\udfff" for character in text)


def _refuse_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON number")


async def _read(request: Request, max_bytes: int) -> bytes:
    # Counted while it arrives: Content-Length may be absent, and is the client's word only.
    received = bytearray()
    chunks = request.stream()
    async for chunk in chunks:
        received += chunk
        if len(received) > max_bytes:
            break
    else:
        return bytes(received)
    num_discarded = 0
    try:
        async with asyncio.timeout(_DISCARD_SECONDS):
            async for chunk in chunks:
                num_discarded += len(chunk)
                if num_discarded > _DISCARD_BYTES:
                    break
    except TimeoutError:
        pass  # it has had its time; the 413 goes out now
    raise RequestError(f"the body has more than {max_bytes} bytes", param=None, status=413)
