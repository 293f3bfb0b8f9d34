"""Bad input, over real sockets: each is a 4xx that names the thing, and the server goes on."""

import json
import socket
from collections.abc import Iterator
from typing import Any

import pytest

from tests.server.live import CONTEXT_LENGTH, MODEL, LiveServer, live_server, make_engine

MAX_BODY_BYTES = 64 * 1024
GOOD = {"model": MODEL, "prompt": "x", "max_tokens": 2}
CHAT = {"model": MODEL, "messages": [{"role": "user", "content": "x"}]}


@pytest.fixture(scope="module")
def server() -> Iterator[LiveServer]:
    with live_server(make_engine()) as live:
        yield live


@pytest.fixture
def live(server: LiveServer) -> Iterator[LiveServer]:
    """Whatever a test sends, the next request is answered and nothing stays behind."""
    yield server
    assert 200 == server.post("/v1/completions", GOOD).status
    stats = server.get("/server_info").json["stats"]
    assert (0, 0) == (stats["running"], stats["queued"])


def raw(live: LiveServer, *pieces: bytes) -> bytes:
    """What the server answers to these bytes, up to where it closes."""
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as connection:
        for piece in pieces:
            connection.sendall(piece)
        answer = b""
        while received := connection.recv(65536):
            answer += received
    return answer


HEAD = b"POST /v1/completions HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"


@pytest.mark.parametrize(
    ("body", "message"),
    [
        (b"", "not JSON"),
        (b'{"model": ', "not JSON"),
        (b"[1, 2]", "expected an object"),
        (b'{"model": "\xff\xfe"}', "not UTF-8"),
        (b"\x00\x01", "not JSON"),
        (b'{"a":' * 5_000, "nested too deeply"),
        (b'{"temperature": NaN}', "NaN"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_a_malformed_body(live: LiveServer, body: bytes, message: str) -> None:
    answer = live.post("/v1/completions", body)

    assert 400 == answer.status
    assert message in answer.error["message"]
    assert "invalid_request_error" == answer.error["type"]


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("model", {"model": None}),
        ("prompt", {"prompt": ""}),
        ("prompt", {"prompt": "\ud800"}),
        ("prompt", {"prompt": [1] * CONTEXT_LENGTH}),
        ("prompt", {"prompt": [10**9]}),
        ("max_tokens", {"max_tokens": 0}),
        ("max_tokens", {"max_tokens": -1}),
        ("max_tokens", {"max_tokens": 10**12}),
        ("max_tokens", {"max_tokens": "5"}),
        ("max_tokens", {"max_tokens": True}),
        ("temperature", {"temperature": -1}),
        ("temperature", {"temperature": "hot"}),
        ("n", {"n": 100}),
        ("suffix", {"suffix": "x"}),
        ("best_of", {"best_of": 5}),
        ("presence_penalty", {"presence_penalty": 1}),
        ("nonsense", {"nonsense": 1}),
        ("stop.0", {"stop": ["\udfff"]}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_wrong_field(live: LiveServer, param: str, fields: dict[str, Any]) -> None:
    answer = live.post("/v1/completions", {**GOOD, **fields})

    assert 400 == answer.status
    assert param == answer.error["param"]
    assert param in answer.error["message"]


@pytest.mark.parametrize(
    ("param", "fields"),
    [
        ("response_format", {"response_format": {"type": "json_schema"}}),
        ("tools", {"tools": [{"type": "function"}]}),
        ("tool_choice", {"tool_choice": "auto"}),
        ("frequency_penalty", {"frequency_penalty": 0.1}),
        ("messages", {"messages": []}),
        ("max_completion_tokens", {"max_completion_tokens": 10**6}),
        ("prompt", {"prompt": "x"}),
    ],
    ids=lambda value: str(value)[:30],
)
def test_a_wrong_chat_field(live: LiveServer, param: str, fields: dict[str, Any]) -> None:
    answer = live.post("/v1/chat/completions", {**CHAT, **fields})

    assert 400 == answer.status
    assert param == answer.error["param"]


def test_a_stream_that_cannot_begin_has_a_status_of_its_own(live: LiveServer) -> None:
    answer = live.post("/v1/completions", {**GOOD, "stream": True, "max_tokens": 10**6})

    assert 400 == answer.status
    assert "max_tokens" == answer.error["param"]


def test_a_body_of_ten_megabytes(live: LiveServer) -> None:
    answer = live.post("/v1/completions", {**GOOD, "prompt": "x" * 10_000_000})

    assert 413 == answer.status
    assert "more than 65536 bytes" in answer.error["message"]


def test_a_body_that_does_not_say_its_length(live: LiveServer) -> None:
    chunk = b"4000\r\n" + b"x" * 0x4000 + b"\r\n"
    answer = raw(live, HEAD + b"transfer-encoding: chunked\r\n\r\n", *[chunk] * 10, b"0\r\n\r\n")

    assert answer.startswith(b"HTTP/1.1 413 ")


def test_a_body_of_exactly_the_limit_is_read(live: LiveServer) -> None:
    body = json.dumps(GOOD).encode().ljust(MAX_BODY_BYTES)

    assert 200 == live.post("/v1/completions", body).status
    assert 413 == live.post("/v1/completions", body + b" ").status


def test_a_body_that_never_comes(live: LiveServer) -> None:
    with socket.create_connection(("127.0.0.1", live.port), timeout=10) as connection:
        connection.sendall(HEAD + b"content-length: 100\r\n\r\n{")


def test_bytes_that_are_no_http(live: LiveServer) -> None:
    assert raw(live, b"\x16\x03\x01\x02\x00\r\n\r\n").startswith(b"HTTP/1.1 400 ")


@pytest.mark.parametrize(
    ("method", "path", "status"),
    [
        ("GET", "/v1/nothing", 404),
        ("GET", "/docs", 404),
        ("GET", "/openapi.json", 404),
        ("GET", "/v1/completions", 405),
        ("DELETE", "/v1/policy", 405),
    ],
)
def test_an_unknown_path_or_method(live: LiveServer, method: str, path: str, status: int) -> None:
    answer = live.send(method, path, None)

    assert status == answer.status
    assert f"{method} {path}" in answer.error["message"]
    assert answer.error["code"] is None


def test_another_model(live: LiveServer) -> None:
    answer = live.post("/v1/completions", {**GOOD, "model": "gpt-4"})

    assert 404 == answer.status
    assert ("model", "model_not_found") == (answer.error["param"], answer.error["code"])


def test_every_answer_has_an_id_of_its_own(live: LiveServer) -> None:
    ids = {live.get("/health").headers["x-request-id"] for _ in range(3)}
    answer = live.post("/v1/completions", GOOD)

    assert 3 == len(ids)
    assert answer.json["id"] == "cmpl-" + answer.headers["x-request-id"]
