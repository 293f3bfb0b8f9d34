"""Errors in OpenAI's shape: what went wrong, of which type, in which field."""

from collections.abc import Mapping
from typing import Any

import msgspec
from starlette.responses import Response

from specserve.errors import RequestError

_TYPES: Mapping[int, str] = {
    401: "authentication_error",
    404: "not_found_error",
    429: "rate_limit_error",
    500: "server_error",
    503: "service_unavailable_error",
}
_CODES: Mapping[int, str] = {
    401: "invalid_api_key",
    404: "model_not_found",
    412: "policy_has_changed",
    413: "body_too_large",
    429: "queue_full",
    503: "not_ready",
}
_RETRY_AFTER_SECONDS = "1"


class ClientGone(Exception):
    """The client went away before its answer was complete."""


def error_body(message: str, *, status: int, param: str | None = None) -> dict[str, Any]:
    """The JSON of an error; `param` is the request's field as the client spelt it."""
    return {
        "error": {
            "message": message,
            "type": _TYPES.get(status, "invalid_request_error"),
            "param": param,
            "code": _CODES.get(status),
        }
    }


def error_response(message: str, *, status: int, param: str | None = None) -> Response:
    """An HTTP answer that says what to do about the error as well as a status can."""
    headers = {}
    if status in (429, 503):
        headers["retry-after"] = _RETRY_AFTER_SECONDS
    if status == 401:
        headers["www-authenticate"] = "Bearer"
    return json_response(error_body(message, status=status, param=param), status, headers)


def request_error_response(error: RequestError) -> Response:
    """The answer to a request that can't be served as asked."""
    return error_response(str(error), status=error.status, param=error.param)


def json_response(
    content: object, status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """`content` (plain values or msgspec structs) as JSON."""
    return Response(
        msgspec.json.encode(content),
        status_code=status,
        headers=headers,
        media_type="application/json",
    )
