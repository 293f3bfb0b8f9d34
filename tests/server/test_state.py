import asyncio

import pytest

from specserve.errors import RequestError
from specserve.server.state import Draining, Failed, Ready, ServerState, Starting
from tests.server.live import make_engine, serving_of

SERVING = serving_of(make_engine())


def ready_state() -> ServerState:
    state = ServerState(phase="attributes")
    state.ready(SERVING)
    return state


def test_it_starts_in_the_phase_that_runs() -> None:
    state = ServerState(phase="attributes")
    state.start_phase("load_target")

    assert Starting(phase="load_target") == state.lifecycle


def test_only_a_ready_server_serves() -> None:
    assert SERVING == ready_state().serving()


@pytest.mark.parametrize(
    ("move", "reason"),
    [
        (lambda state: state.start_phase("kv_cache"), "starting .phase kv_cache"),
        (lambda state: state.drain(), "shutting down"),
        (lambda state: state.fail("no weights"), "failed: no weights"),
    ],
    ids=["starting", "draining", "failed"],
)
def test_any_other_refuses_with_503_and_the_reason(move: object, reason: str) -> None:
    state = ServerState(phase="attributes")
    move(state)  # type: ignore[operator]

    with pytest.raises(RequestError, match=reason) as caught:
        state.serving()

    assert 503 == caught.value.status


def test_failure_is_final_and_the_first_reason_stands() -> None:
    state = ready_state()
    state.fail("killed")
    state.fail("later")
    state.ready(SERVING)
    state.drain()
    state.start_phase("kv_cache")

    assert Failed(reason="killed") == state.lifecycle


def test_a_drain_stands_against_a_late_ready() -> None:
    state = ServerState(phase="attributes")
    state.drain()
    state.ready(SERVING)

    assert Draining(serving=None) == state.lifecycle


def test_a_drained_server_still_knows_its_engine() -> None:
    state = ready_state()
    state.drain()

    assert Draining(serving=SERVING) == state.lifecycle


def test_a_phase_reported_late_does_not_undo_ready() -> None:
    state = ready_state()
    state.start_phase("self_test")

    assert Ready(serving=SERVING) == state.lifecycle


def test_idle_waits_for_the_last_request() -> None:
    async def main() -> None:
        state = ready_state()
        await state.idle()
        with state.admit():
            with state.admit():
                state.drain()
            waiting = asyncio.create_task(state.idle())
            await asyncio.sleep(0)
            assert not waiting.done()
        await asyncio.wait_for(waiting, 1)

    asyncio.run(main())
