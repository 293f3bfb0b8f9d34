"""Commands for the loop: read by a thread of their own, which answers pings by itself."""

import os
import queue
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager

from specserve.worker.messages import Command, Ping, Pong
from specserve.worker.wire import WorkerChannel

EXIT_SUPERVISOR_GONE = 1


class StepClock:
    """Age of the running step; the loop's thread writes it, the reader reads it."""

    def __init__(self) -> None:
        self._began: float | None = None

    @contextmanager
    def step(self) -> Iterator[None]:
        """Around one step of the loop."""
        self._began = time.monotonic()
        try:
            yield
        finally:
            self._began = None

    def seconds(self) -> float | None:
        """How long the step has been running; None between steps."""
        began = self._began
        return None if began is None else time.monotonic() - began


class Inbox:
    """What the supervisor has sent and the loop has not yet carried out.

    When the connection ends, so does this process, at once, whatever the loop is doing: there is
    nobody left to serve.
    """

    def __init__(self, channel: WorkerChannel, clock: StepClock) -> None:
        self._channel = channel
        self._clock = clock
        self._commands: queue.SimpleQueue[Command] = queue.SimpleQueue()

    def wait(self) -> Command:
        """The next command."""
        return self._commands.get()

    def take(self, *, wait: bool) -> list[Command]:
        """All commands that have arrived; with `wait`, at least one."""
        taken = [self._commands.get()] if wait else []
        while not self._commands.empty():  # the caller is the only one that takes
            taken.append(self._commands.get())
        return taken

    def read_until_gone(self) -> None:
        """Body of the reading thread; ends the process, not only the thread."""
        try:
            while (command := self._channel.receive()) is not None:
                if isinstance(command, Ping):
                    pong = Pong(call=command.call, step_seconds=self._clock.seconds())
                    self._channel.send(pong)
                else:
                    self._commands.put(command)
        except Exception:  # noqa: BLE001 - the thread's boundary: shown, then the process ends
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(EXIT_SUPERVISOR_GONE)


def open_inbox(channel: WorkerChannel, clock: StepClock) -> Inbox:
    """An inbox whose thread is reading."""
    inbox = Inbox(channel, clock)
    threading.Thread(target=inbox.read_until_gone, name="inbox", daemon=True).start()
    return inbox
