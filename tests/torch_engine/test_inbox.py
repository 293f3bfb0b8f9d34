import socket
import struct
import subprocess
import sys
import time
from collections.abc import Iterator

import pytest

from specserve.torch_engine.inbox import StepClock
from specserve.worker.messages import Abort, Command, Ping, Pong, Report, Shutdown
from specserve.worker.wire import encode, report_decoder

# A worker whose loop is one endless step, and which then sends the step's commands back as text.
BUSY = """
import socket, sys, time
from specserve.torch_engine.inbox import StepClock, open_inbox
from specserve.worker.wire import WorkerChannel
clock = StepClock()
inbox = open_inbox(WorkerChannel(socket.socket(fileno=int(sys.argv[1]))), clock)
first = inbox.wait()
with clock.step():
    print(type(first).__name__, flush=True)
    time.sleep(0.5)
    print(*[type(command).__name__ for command in inbox.take(wait=False)], flush=True)
    time.sleep(600)
"""


class Busy:
    """The process, and the supervisor's end of its connection."""

    def __init__(self) -> None:
        self.connection, theirs = socket.socketpair()
        self.process = subprocess.Popen(
            [sys.executable, "-c", BUSY, str(theirs.fileno())],
            pass_fds=(theirs.fileno(),),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        theirs.close()
        self.connection.settimeout(30)

    def send(self, *commands: Command) -> None:
        self.connection.sendall(b"".join(encode(command) for command in commands))

    def receive(self) -> Report:
        (length,) = struct.unpack(">I", self.connection.recv(4, socket.MSG_WAITALL))
        return report_decoder().body(self.connection.recv(length, socket.MSG_WAITALL))

    def line(self) -> str:
        if self.process.stdout is None:
            pytest.fail("no output")
        return self.process.stdout.readline().strip()

    def end(self) -> tuple[int, str]:
        """Exit status and stderr."""
        _, errors = self.process.communicate(timeout=30)
        return self.process.returncode, errors


@pytest.fixture
def busy() -> Iterator[Busy]:
    process = Busy()
    yield process
    process.connection.close()
    process.process.kill()
    process.process.communicate(timeout=30)


def test_pings_are_answered_and_commands_kept_during_a_step(busy: Busy) -> None:
    busy.send(Ping(call=1), Abort(request_id="first"))
    assert Pong(call=1, step_seconds=None) == busy.receive()
    assert "Abort" == busy.line()

    busy.send(Shutdown(), Ping(call=2), Abort(request_id="second"))
    answer = busy.receive()

    assert isinstance(answer, Pong)
    assert 2 == answer.call
    assert answer.step_seconds is not None
    assert "Shutdown Abort" == busy.line()


def test_a_process_ends_with_its_supervisor_whatever_it_is_doing(busy: Busy) -> None:
    busy.send(Shutdown())
    assert "Shutdown" == busy.line()

    busy.connection.close()

    assert 1 == busy.end()[0]


def test_a_garbled_stream_ends_the_process_and_says_so(busy: Busy) -> None:
    busy.connection.sendall(b"\xff" * 8)

    status, errors = busy.end()

    assert 1 == status
    assert "the stream is garbled" in errors


def test_a_clock_shows_the_age_of_a_step_and_nothing_between_steps() -> None:
    clock = StepClock()

    assert clock.seconds() is None
    with clock.step():
        time.sleep(0.02)
        assert (clock.seconds() or 0.0) >= 0.02
    assert clock.seconds() is None


def test_a_step_that_raises_has_ended() -> None:
    clock = StepClock()

    with pytest.raises(ZeroDivisionError), clock.step():
        raise ZeroDivisionError

    assert clock.seconds() is None
