import asyncio
import json
import socket
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from openai import APIError, APIStatusError, InternalServerError, RateLimitError
from structlog.testing import capture_logs

from specserve.engine import GenerationRequest
from specserve.testing.script import play_back
from tests.server.live import LETTERS, MODEL, LiveServer, live_server, make_engine

LONG = {"model": MODEL, "prompt": "x", "max_tokens": 400}


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + 10
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def send(live: LiveServer, body: dict[str, Any]) -> socket.socket:
    content = json.dumps(body).encode()
    connection = socket.create_connection(("127.0.0.1", live.port), timeout=10)
    head = f"POST /v1/completions HTTP/1.1\r\nhost: x\r\ncontent-length: {len(content)}\r\n\r\n"
    connection.sendall(head.encode() + content)
    return connection


def outcome(live: LiveServer, name: str) -> bool:
    line = f'specserve_requests_total{{endpoint="/v1/completions",outcome="{name}"}} 1.0'
    return line in live.get("/metrics").body.decode()


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
def test_a_client_that_leaves_aborts_all_its_choices(stream: bool, reset: bool) -> None:
    with live_server(make_engine(round_seconds=0.02)) as live:
        with send(live, {**LONG, "n": 2, "stream": stream}) as connection:
            wait_until(lambda: live.get("/server_info").json["stats"]["emitted"] > 4)
            if reset:
                linger = (1).to_bytes(4, "little") + (0).to_bytes(4, "little")
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
        wait_until(lambda: len(live.engine.aborted) == 2)

        assert 0 == live.get("/server_info").json["stats"]["running"]
        wait_until(lambda: outcome(live, "disconnected"))


def test_a_client_that_leaves_the_queue_is_forgotten() -> None:
    with live_server(make_engine(slots=1, round_seconds=0.02)) as live:
        with send(live, LONG):
            wait_until(lambda: live.get("/server_info").json["stats"]["running"] == 1)
            with send(live, LONG):
                wait_until(lambda: live.get("/server_info").json["stats"]["queued"] == 1)
            wait_until(lambda: live.get("/server_info").json["stats"]["queued"] == 0)
        wait_until(lambda: live.get("/server_info").json["stats"]["running"] == 0)

        assert 2 == len(
            live.openai().completions.create(model=MODEL, prompt="x", max_tokens=2).choices[0].text
        )


def test_a_full_queue_is_429_with_a_time_to_retry() -> None:
    with live_server(make_engine(slots=1, max_queued=0, round_seconds=0.02)) as live:
        with send(live, LONG):
            wait_until(lambda: live.get("/server_info").json["stats"]["running"] == 1)
            for stream in (False, True):
                with pytest.raises(RateLimitError) as caught:
                    live.openai().completions.create(
                        model=MODEL, prompt="x", stream=stream, max_tokens=2
                    )

        assert "1" == caught.value.response.headers["retry-after"]
        assert "queue_full" == caught.value.code


def test_draining_finishes_what_runs_and_refuses_what_comes() -> None:
    with live_server(make_engine(round_seconds=0.02)) as live:
        with ThreadPoolExecutor(1) as pool:
            running = pool.submit(
                live.openai().completions.create, model=MODEL, prompt="x", max_tokens=60
            )
            wait_until(lambda: live.get("/server_info").json["stats"]["running"] == 1)
            live.call(live.state.drain)
            refused = live.post("/v1/completions", LONG)
            idle = asyncio.run_coroutine_threadsafe(live.state.idle(), live.loop)

            assert not idle.done()
            assert 60 == len(running.result().choices[0].text)
            idle.result(5)

    assert 503 == refused.status
    assert "not_ready" == refused.error["code"]
    assert "1" == refused.headers["retry-after"]


def test_a_starting_server_names_its_phase() -> None:
    with live_server(make_engine(), ready=False) as live:
        answer = live.post("/v1/completions", LONG)

    assert 503 == answer.status
    assert "phase load_target" in answer.error["message"]


def test_an_engine_that_dies_ends_the_answers_with_an_error() -> None:
    """Whole answers get a 500, streams an error event: nobody hangs, nothing looks complete."""
    with live_server(make_engine(round_seconds=0.02)) as live, ThreadPoolExecutor(2) as pool:
        client = live.openai()

        def read_stream() -> None:
            for _ in client.completions.create(
                model=MODEL, prompt="x", max_tokens=400, stream=True
            ):
                pass

        whole = pool.submit(client.completions.create, model=MODEL, prompt="x", max_tokens=400)
        stream = pool.submit(read_stream)
        wait_until(lambda: live.get("/server_info").json["stats"]["verify_rounds"] > 8)
        live.call(lambda: live.engine.die("killed by signal 9"))

        with pytest.raises(InternalServerError, match="killed by signal 9"):
            whole.result()
        with pytest.raises(APIError, match="killed by signal 9") as caught:
            stream.result()

    assert not isinstance(caught.value, APIStatusError)


def test_a_bug_is_a_500_with_its_traceback_in_the_log() -> None:
    def broken(_: GenerationRequest) -> Iterator[Sequence[int]]:
        raise ZeroDivisionError("internals")

    with capture_logs() as logs, live_server(make_engine(broken)) as live:
        answers = [
            live.post("/v1/completions", {**LONG, "stream": stream}) for stream in (False, True)
        ]

        assert [500, 500] == [answer.status for answer in answers]
        assert {"server_error"} == {answer.error["type"] for answer in answers}
        assert b"internals" not in b"".join(answer.body for answer in answers)
        assert 200 == live.get("/health").status
    errors = [line for line in logs if line["event"] == "request.internal_error"]
    assert [True, True] == [line["exc_info"] for line in errors]


def test_a_bug_in_the_middle_of_a_stream_ends_it_with_an_error_event() -> None:
    def breaks_late(_: GenerationRequest) -> Iterator[Sequence[int]]:
        yield [97]
        raise ZeroDivisionError("internals")

    with capture_logs(), live_server(make_engine(breaks_late)) as live:
        answer = live.post("/v1/completions", {**LONG, "stream": True})
        events = answer.body.decode().split("\n\n")

    assert 200 == answer.status
    assert "internal error" in events[-2]
    assert "[DONE]" not in answer.body.decode()
    assert "internals" not in answer.body.decode()


def test_unfinished_characters_wait_for_their_rest() -> None:
    """A snowman in three rounds is one piece of text, and an event each is not sent for it."""
    snowman = "\N{SNOWMAN}".encode()
    with live_server(make_engine(play_back(*([byte] for byte in snowman)))) as live:
        chunks = list(
            live.openai().completions.create(
                model=MODEL,
                prompt="x",
                max_tokens=9,
                stream=True,
                stream_options={"include_usage": True},
            )
        )

    assert ["\N{SNOWMAN}", ""] == [c.choices[0].text for c in chunks if c.choices]
    assert chunks[-1].usage is not None
    assert 3 == chunks[-1].usage.completion_tokens


def test_a_banned_token_never_appears() -> None:
    """C04, for every token of every round."""
    with live_server(make_engine(LETTERS)) as live:
        answer = live.openai().completions.create(
            model=MODEL,
            prompt="x",
            max_tokens=60,
            temperature=0,
            logit_bias={str(ord("e")): -100},
        )

    assert "e" not in answer.choices[0].text
    assert 60 == len(answer.choices[0].text)


def test_a_stream_is_not_cached_on_its_way() -> None:
    with live_server(make_engine()) as live:
        answer = live.post("/v1/completions", {**LONG, "stream": True})

    assert "text/event-stream; charset=utf-8" == answer.headers["content-type"]
    assert "no-cache" == answer.headers["cache-control"]
    assert answer.body.endswith(b"data: [DONE]\n\n")
