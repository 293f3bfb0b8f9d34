import asyncio
import json
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send
from structlog.testing import capture_logs

from specserve.errors import EngineError, RequestError
from specserve.server.boundary import Boundary
from specserve.server.error_response import ClientGone, json_response
from specserve.server.metrics import Metrics

PATH = "/v1/completions"


async def nothing() -> Message:
    raise AssertionError("the boundary reads no body")


def serve(error: Exception | None, *, started: bool = False, status: int = 200) -> dict[str, Any]:
    """One request to an application that raises `error`: what was sent, counted and logged."""
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        if started or error is None:
            await json_response({"id": scope["state"]["request_id"]}, status)(scope, receive, send)
        if error is not None:
            raise error

    metrics = Metrics()
    scope: Scope = {"type": "http", "method": "POST", "path": PATH, "headers": []}
    with capture_logs() as logs:
        asyncio.run(Boundary(app, metrics)(scope, nothing, send))
    outcomes = [
        name
        for name in ("finished", "refused", "disconnected", "failed")
        if f'outcome="{name}"'.encode() in metrics.render(())
    ]
    return {"sent": sent, "outcomes": outcomes, "logs": logs}


@pytest.mark.parametrize(
    ("error", "outcome", "status"),
    [
        (None, "finished", 200),
        (RequestError("no", param="n"), "refused", 400),
        (RequestError("no", param=None, status=503), "refused", 503),
        (EngineError("killed"), "failed", 500),
        (ZeroDivisionError("internals"), "failed", 500),
    ],
)
def test_every_end_has_an_answer_an_outcome_and_a_line(
    error: Exception | None, outcome: str, status: int
) -> None:
    found = serve(error)
    last = found["logs"][-1]

    assert [outcome] == found["outcomes"]
    assert status == found["sent"][0]["status"]
    assert ("request.done", outcome, status) == (last["event"], last["outcome"], last["status"])


def test_a_client_that_left_gets_nothing() -> None:
    found = serve(ClientGone())

    assert [] == found["sent"]
    assert ["disconnected"] == found["outcomes"]


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        (RequestError("no", param=None), "refused"),
        (EngineError("killed"), "failed"),
        (ZeroDivisionError(), "failed"),
    ],
)
def test_an_answer_that_has_begun_is_not_begun_again(error: Exception, outcome: str) -> None:
    found = serve(error, started=True)

    assert 1 == sum(message["type"] == "http.response.start" for message in found["sent"])
    assert [outcome] == found["outcomes"]


def test_an_answer_of_4xx_counts_as_refused() -> None:
    assert ["refused"] == serve(None, status=404)["outcomes"]


def test_a_bug_is_logged_with_its_traceback_and_not_told() -> None:
    found = serve(ZeroDivisionError("internals"))

    assert [True] == [
        line["exc_info"] for line in found["logs"] if line["event"] == "request.internal_error"
    ]
    assert b"internals" not in found["sent"][1]["body"]


def test_the_id_is_the_same_inside_in_the_header_and_in_the_log() -> None:
    found = serve(None)
    inside = json.loads(found["sent"][1]["body"])["id"]

    assert inside.encode() == dict(found["sent"][0]["headers"])[b"x-request-id"]
    assert inside == found["logs"][-1]["request_id"]


def test_what_is_no_request_passes_through() -> None:
    seen: list[str] = []

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        seen.append(scope["type"])

    async def send(message: Message) -> None:
        raise AssertionError("nothing to send")

    asyncio.run(Boundary(app, Metrics())({"type": "lifespan"}, nothing, send))

    assert ["lifespan"] == seen
