import asyncio
import time
from dataclasses import replace

import pytest

from tests.server.live import Answer, LiveServer, live_server, make_engine, serving_of


def probes(live: LiveServer) -> tuple[Answer, Answer]:
    return live.get("/health"), live.get("/ready")


def test_a_starting_server_is_alive_and_not_ready() -> None:
    with live_server(make_engine(), ready=False) as live:
        live.call(lambda: live.state.start_phase("kv_cache"))
        alive, ready = probes(live)

    assert (200, 503) == (alive.status, ready.status)
    assert {"status": "starting", "phase": "kv_cache"} == alive.json == ready.json


def test_a_ready_server_is_both() -> None:
    with live_server(make_engine()) as live:
        alive, ready = probes(live)

    assert (200, 200) == (alive.status, ready.status)


def test_a_draining_server_is_alive_and_not_ready() -> None:
    with live_server(make_engine()) as live:
        live.call(live.state.drain)
        alive, ready = probes(live)

    assert (200, 503) == (alive.status, ready.status)
    assert "draining" == alive.json["status"] == ready.json["status"]


def test_a_server_told_to_stop_while_it_starts_is_alive() -> None:
    with live_server(make_engine(), ready=False) as live:
        live.call(live.state.drain)

        assert 200 == live.get("/health").status


def test_a_failed_server_is_neither_and_says_why() -> None:
    with live_server(make_engine(), ready=False) as live:
        live.call(lambda: live.state.fail("phase load_target failed: no weights"))
        alive, ready = probes(live)

    assert (503, 503) == (alive.status, ready.status)
    assert "no weights" in alive.json["reason"]


def test_health_is_the_workers_own_word() -> None:
    """H01: nobody has told the state that the worker is dead, and yet health is red."""
    with live_server(make_engine()) as live:
        live.call(lambda: live.engine.die("killed by signal 9"))
        began = time.monotonic()
        alive, ready = probes(live)

    assert (503, 503) == (alive.status, ready.status)
    assert "signal 9" in alive.json["reason"]
    assert time.monotonic() - began < 2


def test_a_worker_that_does_not_answer_is_unhealthy() -> None:
    engine = make_engine()

    async def hang() -> None:
        await asyncio.Event().wait()

    with live_server(engine, ready=False, probe_seconds=0.1) as live:
        live.call(lambda: live.state.ready(replace(serving_of(engine), probe=hang)))
        answer = live.get("/health")

    assert 503 == answer.status
    assert "did not answer within 0.1 s" in answer.json["reason"]


def test_a_long_prefill_is_healthy() -> None:
    with live_server(make_engine(prefill_seconds=30)) as live:
        stream = live.openai().with_options(timeout=0.3)
        with pytest.raises(Exception, match="timed out"):
            stream.completions.create(model="tiny", prompt="x", max_tokens=1)

        assert 200 == live.get("/health").status
