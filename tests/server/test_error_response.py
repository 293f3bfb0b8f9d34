import json

import pytest

from specserve.errors import RequestError
from specserve.server.error_response import error_body, error_response, request_error_response


def test_a_request_error_keeps_its_field_and_status() -> None:
    answer = request_error_response(RequestError("n: too many", param="n", status=429))

    assert 429 == answer.status_code
    assert {
        "message": "n: too many",
        "type": "rate_limit_error",
        "param": "n",
        "code": "queue_full",
    } == json.loads(bytes(answer.body))["error"]


@pytest.mark.parametrize("status", [400, 413])
def test_whatever_is_the_requests_fault_is_an_invalid_request(status: int) -> None:
    assert "invalid_request_error" == error_body("x", status=status)["error"]["type"]


@pytest.mark.parametrize(("status", "header"), [(429, "1"), (503, "1"), (400, None), (500, None)])
def test_only_what_passes_is_worth_a_retry(status: int, header: str | None) -> None:
    assert header == error_response("x", status=status).headers.get("retry-after")
