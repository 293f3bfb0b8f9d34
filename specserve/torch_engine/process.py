"""The worker process: `python -m specserve.torch_engine.process --fd N`.

Builds what its supervisor asks for, then serves it. One thread owns the model and runs the loop;
another reads commands and answers pings, so that a long step still shows a living worker. The
process ends when its supervisor does.
"""

import argparse
import faulthandler
import signal
import socket
import sys
import traceback
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import assert_never

import torch

from specserve.errors import ConfigError, EngineError, PhaseError, Problem, RequestError
from specserve.plan import Plan
from specserve.torch_engine.build import TorchWorker, build
from specserve.torch_engine.inbox import Inbox, StepClock, open_inbox
from specserve.torch_engine.loop import Loop
from specserve.worker.messages import (
    PLAN,
    POLICY,
    POLICY_STATE,
    STATS,
    Abort,
    Build,
    BuildFailed,
    Built,
    Chunks,
    Command,
    Fatal,
    Happened,
    PhaseReported,
    Ping,
    PolicyRefused,
    PolicySet,
    ReadStats,
    RequestFailed,
    RequestRefused,
    SetPolicy,
    Shutdown,
    StatsRead,
    Submit,
)
from specserve.worker.phases import PhaseRunner, describe
from specserve.worker.switches import SwitchReports
from specserve.worker.wire import WorkerChannel

EXIT_BUILD_FAILED = PhaseError.exit_code
EXIT_LOOP_BROKE = EngineError.exit_code


def main(arguments: Sequence[str], make_runner: Callable[..., PhaseRunner] = PhaseRunner) -> int:
    """Return the exit status: 0 after a shutdown, 3 after a failed build, 4 if the loop broke."""
    parser = argparse.ArgumentParser(description="Worker process; started by specserve itself.")
    parser.add_argument("--fd", type=int, required=True, help="socket of the supervisor")
    descriptor = parser.parse_args(arguments).fd
    faulthandler.enable()  # a crash in native code leaves its stack on stderr
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the supervisor's to decide
    # Left open to the end of the process: its end is what tells the supervisor, and the inbox.
    channel = WorkerChannel(socket.socket(fileno=descriptor))
    clock = StepClock()
    inbox = open_inbox(channel, clock)
    match inbox.wait():
        case Build(plan_json=plan_json):
            plan = PLAN.validate_json(plan_json)
            return _build_and_serve(plan, channel, inbox, clock, make_runner)
        case command:
            raise TypeError(f"the first command must be Build, not {type(command).__name__}")


def _build_and_serve(
    plan: Plan,
    channel: WorkerChannel,
    inbox: Inbox,
    clock: StepClock,
    make_runner: Callable[..., PhaseRunner],
) -> int:
    phases = make_runner(
        emit=lambda record: channel.send(PhaseReported(record=record)),
        device_bytes=_device_bytes(plan),
    )
    try:
        loop = make_loop(build(plan, phases))
    except Exception as error:  # noqa: BLE001 - the process boundary: told, then ended
        cause = error.cause if isinstance(error, PhaseError) else describe(error)
        channel.send(BuildFailed(cause=cause, traceback=traceback.format_exc()))
        return EXIT_BUILD_FAILED
    channel.send(Built())
    try:
        Service(loop, channel, inbox, clock).run()
    except Exception as error:  # noqa: BLE001 - the process boundary: told, then ended
        channel.send(Fatal(message=describe(error), traceback=traceback.format_exc()))
        return EXIT_LOOP_BROKE
    return 0


def make_loop(worker: TorchWorker) -> Loop:
    """The decoding loop of a finished worker."""
    return Loop(
        plan=worker.plan,
        target=worker.passes.target,
        draft=worker.passes.draft,
        target_cache=worker.caches.target,
        draft_cache=worker.caches.draft,
        tokenizer=worker.target.tokenizer,
    )


class Service:
    """Carries out commands between steps, and steps while there is work."""

    def __init__(self, loop: Loop, channel: WorkerChannel, inbox: Inbox, clock: StepClock) -> None:
        self._loop = loop
        self._channel = channel
        self._inbox = inbox
        self._clock = clock
        self._switches = SwitchReports()

    def run(self) -> None:
        """Until a shutdown. What breaks the loop comes out."""
        while True:
            for command in self._inbox.take(wait=not self._loop.has_work):
                if isinstance(command, Shutdown):
                    self._report_switch(last=True)
                    self._loop.close()
                    return
                self._carry_out(command)
                self._report_switch()
            if self._loop.has_work:
                with self._clock.step():
                    chunks = self._loop.step()
                if chunks:
                    self._channel.send(Chunks(chunks=tuple(chunks)))
                self._report_switch()

    def _carry_out(self, command: Command) -> None:
        match command:
            case Submit():
                self._submit(command)
            case Abort(request_id=request_id):
                self._loop.abort(request_id)
            case SetPolicy():
                self._set_policy(command)
            case ReadStats(call=call):
                stats_json = STATS.dump_json(self._loop.stats())
                self._channel.send(StatsRead(call=call, stats_json=stats_json))
            case Build() | Ping() | Shutdown():
                raise TypeError(f"{type(command).__name__} is not for the loop")
            case _:
                assert_never(command)

    def _submit(self, command: Submit) -> None:
        identity = command.request.request_id
        try:
            self._loop.submit(command.request)
        except RequestError as error:
            self._channel.send(
                RequestRefused(
                    request_id=identity, message=str(error), param=error.param, status=error.status
                )
            )
        except Exception as error:  # noqa: BLE001 - nothing has been admitted: the others go on
            self._channel.send(RequestFailed(request_id=identity, message=describe(error)))

    def _set_policy(self, command: SetPolicy) -> None:
        try:
            state = self._loop.set_policy(POLICY.validate_json(command.policy_json))
        except ConfigError as error:
            problems = tuple(_sendable(problem) for problem in error.problems)
            self._channel.send(PolicyRefused(call=command.call, problems=problems))
            return
        state_json = POLICY_STATE.dump_json(state)
        self._channel.send(PolicySet(call=command.call, state_json=state_json))

    def _report_switch(self, *, last: bool = False) -> None:
        """Looked at after whatever may switch, and after each question: those come every second."""
        fields = self._switches.look(self._loop.policy_state(), last=last)
        if fields is not None:
            self._channel.send(Happened(kind="policy.switch", fields=fields))


def _device_bytes(plan: Plan) -> Callable[[], int | None]:
    """Reads the device memory that torch holds; None on a CPU, where it is the host's."""
    if plan.device == "cpu":
        return lambda: None
    return torch.cuda.memory_allocated


def _sendable(problem: Problem) -> Problem:
    """A value that is no plain one goes as people read it."""
    plain = isinstance(problem.value, str | int | float | None)
    return problem if plain else replace(problem, value=str(problem.value))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
