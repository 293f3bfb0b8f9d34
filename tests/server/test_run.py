import asyncio
import os
import signal
import socket
import time

from starlette.types import Receive, Scope, Send

from specserve.server.error_response import json_response
from specserve.server.run import run_server


async def slow_app(scope: Scope, receive: Receive, send: Send) -> None:
    if scope["type"] == "http":
        await asyncio.sleep(float(scope["path"][1:]))
        await json_response({})(scope, receive, send)


async def get(port: int, path: str) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    try:
        writer.write(f"GET {path} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n".encode())
        return await reader.read()
    finally:
        writer.close()
        await writer.wait_closed()


def test_it_serves_on_the_socket_until_told_to_stop() -> None:
    async def main() -> None:
        listener, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
        port = listener.getsockname()[1]
        serving = asyncio.create_task(run_server(slow_app, listener, stop=stop, grace_seconds=5))
        answering = asyncio.create_task(get(port, "/0.3"))
        await asyncio.sleep(0.1)
        stop.set()
        answer, _ = await asyncio.gather(answering, serving)

        assert answer.startswith(b"HTTP/1.1 200 ")
        assert -1 == listener.fileno()

    asyncio.run(main())


def test_an_answer_beyond_the_grace_is_cut_off() -> None:
    async def main() -> float:
        listener, stop = socket.create_server(("127.0.0.1", 0)), asyncio.Event()
        port = listener.getsockname()[1]
        serving = asyncio.create_task(run_server(slow_app, listener, stop=stop, grace_seconds=0.5))
        answering = asyncio.create_task(get(port, "/60"))
        await asyncio.sleep(0.1)
        began = time.monotonic()
        stop.set()
        await asyncio.gather(answering, serving, return_exceptions=True)
        return time.monotonic() - began

    assert asyncio.run(main()) < 5


def test_signals_are_left_to_the_supervisor() -> None:
    async def main() -> list[str]:
        received: list[str] = []
        asyncio.get_running_loop().add_signal_handler(
            signal.SIGTERM, lambda: received.append("SIGTERM")
        )
        stop = asyncio.Event()
        serving = asyncio.create_task(
            run_server(slow_app, socket.create_server(("127.0.0.1", 0)), stop=stop, grace_seconds=1)
        )
        await asyncio.sleep(0.1)
        os.kill(os.getpid(), signal.SIGTERM)
        await asyncio.sleep(0.1)
        assert not serving.done()
        stop.set()
        await serving
        return received

    assert ["SIGTERM"] == asyncio.run(main())
