import asyncio
import sys
from collections.abc import Awaitable, Callable

import psutil
import pytest

from specserve.errors import EngineError
from specserve.worker.child import Child, describe_exit, spawn
from specserve.worker.messages import Built, Shutdown

# Starts a grandchild, says so through the connection, and waits.
PARENT = """
import socket, subprocess, sys, time
from specserve.worker.messages import Built
from specserve.worker.wire import encode
subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
socket.socket(fileno=int(sys.argv[2])).sendall(encode(Built()))
time.sleep(600)
"""


def _with_child(code: str, use: Callable[[Child], Awaitable[None]]) -> None:
    async def main() -> None:
        child = await spawn((sys.executable, "-c", code), {"SPECSERVE_TEST": "7"})
        try:
            await asyncio.wait_for(use(child), 30)
        finally:
            await child.kill()

    asyncio.run(main())
    assert [] == psutil.Process().children(recursive=True)


@pytest.mark.parametrize(
    ("status", "words"),
    [
        (0, "ended with exit status 0"),
        (3, "ended with exit status 3"),
        (-9, "was killed by SIGKILL (exit status 137)"),
        (-11, "was killed by SIGSEGV (exit status 139)"),
        (-40, "was killed by signal 40 (exit status 168)"),
    ],
)
def test_an_exit_status_is_told_in_words(status: int, words: str) -> None:
    assert words == describe_exit(status)


def test_the_whole_process_group_is_ended() -> None:
    async def use(child: Child) -> None:
        assert Built() == await child.receive()
        leader = psutil.Process(child.pid)
        family = [leader, *leader.children(recursive=True)]
        assert 2 == len(family)

        await child.kill()
        _, alive = psutil.wait_procs(family, timeout=5)

        assert [] == alive

    _with_child(PARENT, use)


def test_a_child_sees_its_environment_and_its_socket_only() -> None:
    code = (
        "import os, sys; fds = set(os.listdir('/proc/self/fd'));"
        "sys.exit(int(os.environ['SPECSERVE_TEST']) if sys.argv[2] in fds and len(fds) <= 5 else 1)"
    )

    async def use(child: Child) -> None:
        assert "ended with exit status 7" == await child.exited()

    _with_child(code, use)


def test_a_child_that_closes_its_end_has_nothing_more_to_say() -> None:
    async def use(child: Child) -> None:
        assert await child.receive() is None

    _with_child("import os, sys, time; os.close(int(sys.argv[2])); time.sleep(600)", use)


def test_a_child_that_stays_after_its_end_is_killed() -> None:
    async def use(child: Child) -> None:
        assert "did not end within 0.2 s" in await child.exited(0.2)

    _with_child("import time; time.sleep(600)", use)


def test_sending_to_a_child_that_was_killed_is_an_engine_error() -> None:
    async def use(child: Child) -> None:
        await child.kill()

        with pytest.raises(EngineError, match="the worker process is gone"):
            child.send(Shutdown())

    _with_child("import time; time.sleep(600)", use)
