"""The worker's process as its supervisor sees it: started, spoken to, and surely ended."""

import asyncio
import os
import signal
import socket
from collections.abc import Mapping, Sequence
from contextlib import suppress

from specserve.errors import EngineError
from specserve.worker.messages import Command, Report
from specserve.worker.wire import encode, read_frame, report_decoder

# A signal that can't be refused needs no more than the kernel's time to end a process.
EXIT_SECONDS = 5.0
# To print the stacks of all threads, also on a busy machine.
ABORT_SECONDS = 2.0


class Child:
    """One worker process, leader of its own group. `kill` leaves nothing of that group."""

    def __init__(
        self,
        process: asyncio.subprocess.Process,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        self._process = process
        self._reader = reader
        self._writer = writer
        self._decoder = report_decoder()

    @property
    def pid(self) -> int:
        """Also the id of its process group."""
        return self._process.pid

    def send(self, command: Command) -> None:
        """Queue one frame; raises EngineError if the process is gone."""
        if self._writer.is_closing():
            raise EngineError("the worker process is gone")
        self._writer.write(encode(command))

    async def receive(self) -> Report | None:
        """The next report; None once the process has closed its end, as a dead one has."""
        return await read_frame(self._reader, self._decoder)

    async def exited(self, seconds: float = EXIT_SECONDS) -> str:
        """How the process ended, for people; one that doesn't end in time is killed."""
        try:
            async with asyncio.timeout(seconds):
                status = await self._process.wait()
        except TimeoutError:
            await self.kill()
            return f"closed its connection and did not end within {seconds:g} s"
        return describe_exit(status)

    async def abort(self, seconds: float = ABORT_SECONDS) -> None:
        """End a process that hangs. One that can still tell leaves its stacks on stderr."""
        with suppress(ProcessLookupError):  # it has ended by itself
            os.kill(self.pid, signal.SIGABRT)
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._process.wait()
        await self.kill()

    async def kill(self) -> None:
        """End the whole group and wait for its leader. Safe to call twice, and on a dead child."""
        with suppress(ProcessLookupError):  # everybody of the group has ended by himself
            os.killpg(self.pid, signal.SIGKILL)
        await self._process.wait()
        self._writer.close()
        with suppress(ConnectionError):  # unsent bytes to a dead process are no loss
            await self._writer.wait_closed()


async def spawn(command: Sequence[str], environment: Mapping[str, str]) -> Child:
    """Start `command` with `--fd N`, the number of its end of the connection."""
    ours, theirs = socket.socketpair()
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            "--fd",
            str(theirs.fileno()),
            stdin=asyncio.subprocess.DEVNULL,
            pass_fds=(theirs.fileno(),),
            env={**os.environ, **environment},
            start_new_session=True,  # a Ctrl-C at the terminal reaches the supervisor only
        )
    except BaseException:
        ours.close()
        raise
    finally:
        theirs.close()
    reader, writer = await asyncio.open_unix_connection(sock=ours)
    return Child(process, reader, writer)


def describe_exit(status: int) -> str:
    """`status` as subprocess has it: negative for a signal."""
    if status >= 0:
        return f"ended with exit status {status}"
    try:
        name = signal.Signals(-status).name
    except ValueError:  # a real-time signal has no name of its own
        name = f"signal {-status}"
    return f"was killed by {name} (exit status {128 - status})"
