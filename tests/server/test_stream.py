import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import Any

import pytest
from starlette.types import Message

from specserve.errors import RequestError
from specserve.server.error_response import ClientGone
from specserve.server.stream import EventStream, event, until_client_leaves

Receive = Callable[[], Awaitable[Message]]


async def stays() -> Message:
    await asyncio.Event().wait()
    raise AssertionError("unreachable")


async def leaves() -> Message:
    await asyncio.sleep(0.02)
    return {"type": "http.disconnect"}


async def answer(events: AsyncGenerator[bytes, None], receive: Receive = stays) -> list[Message]:
    sent: list[Message] = []

    async def send(message: Message) -> None:
        sent.append(message)

    try:
        await EventStream(events)({"type": "http"}, receive, send)
    except Exception as error:  # noqa: BLE001  # told to the test beside what was sent
        sent.append({"type": type(error).__name__})
    return sent


def types(sent: list[Message]) -> list[str]:
    return [message["type"] for message in sent]


def test_an_event_is_one_line_of_json() -> None:
    assert b'data: {"a":"x\\ny"}\n\n' == event({"a": "x\ny"})


def test_events_are_sent_as_they_come() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        yield b"1"
        yield b"2"

    sent = asyncio.run(answer(events()))

    assert [b"1", b"2", b""] == [message["body"] for message in sent[1:]]
    assert [True, True, False] == [message["more_body"] for message in sent[1:]]


def test_an_error_before_the_first_event_sends_nothing() -> None:
    async def events(refused: bool) -> AsyncGenerator[bytes, None]:
        if refused:
            raise RequestError("no", param="n")
        yield b""

    assert ["RequestError"] == types(asyncio.run(answer(events(refused=True))))


def test_a_later_error_is_the_last_event_and_is_raised() -> None:
    async def events() -> AsyncGenerator[bytes, None]:
        yield b"1"
        raise RequestError("no", param="n")

    sent = asyncio.run(answer(events()))

    assert "RequestError" == sent[-1]["type"]
    assert b'"message":"no"' in sent[-2]["body"]
    assert not sent[-2]["more_body"]


@pytest.mark.parametrize("num_before", [0, 1])
def test_a_client_that_leaves_closes_the_generator(num_before: int) -> None:
    closed: list[str] = []

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            for _ in range(num_before):
                yield b"1"
            await asyncio.Event().wait()
        finally:
            await asyncio.sleep(0)
            closed.append("closed")

    sent = asyncio.run(answer(events(), leaves))

    assert "ClientGone" == sent[-1]["type"]
    assert ["closed"] == closed


def test_a_client_that_leaves_during_a_blocked_write_closes_the_generator() -> None:
    """The generator then stands at its yield, where no cancellation reaches it."""
    closed: list[str] = []

    async def events() -> AsyncGenerator[bytes, None]:
        try:
            yield b"1"
        finally:
            closed.append("closed")

    async def send(message: Message) -> None:
        await asyncio.Event().wait()

    async def main() -> None:
        generator = events()
        with pytest.raises(ClientGone):
            await EventStream(generator)({"type": "http"}, leaves, send)

        assert ["closed"] == closed  # now, not when the loop ends or the collector comes

    asyncio.run(main())


def test_work_that_ends_first_returns_its_result() -> None:
    async def work() -> int:
        return 5

    assert 5 == asyncio.run(until_client_leaves(stays, work()))


def test_work_is_cancelled_with_whoever_waits_for_it() -> None:
    cancelled: list[str] = []

    async def work() -> None:
        try:
            await asyncio.Event().wait()
        finally:
            cancelled.append("cancelled")

    async def main() -> None:
        waiting: asyncio.Task[Any] = asyncio.create_task(until_client_leaves(stays, work()))
        await asyncio.sleep(0.01)
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)

    asyncio.run(main())

    assert ["cancelled"] == cancelled
