"""A worker process without a model: it speaks the real protocol, and lies where it is told to.

`python scripted_worker.py LIE --fd N`. It "decodes" token + 1 for each token.
"""

import dataclasses
import faulthandler
import os
import signal
import socket
import sys
import time
import traceback
from collections.abc import Callable

from specserve.config.policy import OffPolicy, PolicyConfig
from specserve.engine import (
    EngineStats,
    GenerationChunk,
    GenerationRequest,
    Mode,
    PolicyState,
    RequestCounters,
    TokenLogprob,
)
from specserve.errors import PhaseError, Problem
from specserve.rule_ids import RuleId
from specserve.torch_engine.inbox import Inbox, StepClock, open_inbox
from specserve.worker import messages
from specserve.worker.phases import WORKER_PHASES, Phase, PhaseRunner
from specserve.worker.wire import WorkerChannel

NUM_STEPS = 3
ZERO = EngineStats(
    drafted=0,
    accepted=0,
    emitted=0,
    verify_rounds=0,
    plain_steps=0,
    draft_calls=0,
    draft_upkeep_calls=0,
    verify_calls=0,
    prefill_tokens=0,
    accepted_by_position=(),
    seconds_by_mode={},
    emitted_by_mode={},
    running=0,
    running_decodes=0,
    queued=0,
    free_slots=0,
    total_slots=0,
    policy=PolicyState(
        policy=OffPolicy(kind="off"),
        mode=Mode.PLAIN,
        num_steps=0,
        reason="start",
        since_seconds=0.0,
        switches=0,
    ),
)


class ScriptedWorker:
    """Answers as a worker should, but for its lie."""

    def __init__(self, lie: str, channel: WorkerChannel, inbox: Inbox, clock: StepClock) -> None:
        self._lie = lie
        self._channel = channel
        self._inbox = inbox
        self._clock = clock
        self._stats = ZERO

    def serve(self) -> int:
        while True:
            match self._inbox.wait():
                case messages.Submit(request=request):
                    self._generate(request)
                case messages.SetPolicy(call=call, policy_json=policy_json):
                    self._set_policy(call, messages.POLICY.validate_json(policy_json))
                case messages.ReadStats(call=call):
                    stats_json = messages.STATS.dump_json(self._stats)
                    self._channel.send(messages.StatsRead(call=call, stats_json=stats_json))
                case messages.Abort(request_id=request_id):
                    self._send_abort(request_id)
                case messages.Shutdown():
                    if self._lie == "never ends":
                        time.sleep(600)
                    return 0
                case _:
                    pass

    def _set_policy(self, call: int, policy: PolicyConfig) -> None:
        if policy.kind == "batch_threshold":
            problem = Problem(
                rule=RuleId.POLICY_NOT_BUILT_FOR,
                key="policy",
                value=policy.kind,
                expected="a draft",
                fix="policy=off",
            )
            self._channel.send(messages.PolicyRefused(call=call, problems=(problem,)))
            return
        depth = 0 if policy.kind == "off" else NUM_STEPS
        state = dataclasses.replace(
            self._stats.policy,
            policy=policy,
            num_steps=depth,
            mode=Mode.SPECULATIVE if depth else Mode.PLAIN,
        )
        self._stats = dataclasses.replace(self._stats, policy=state)
        state_json = messages.POLICY_STATE.dump_json(state)
        self._channel.send(messages.PolicySet(call=call, state_json=state_json))

    def _generate(self, request: GenerationRequest) -> None:
        speculative = self._stats.policy.mode is Mode.SPECULATIVE
        match request.prompt_token_ids[0]:
            case 100:  # ends this process in the middle of the request
                self._send_chunk(request, (101,), last=False)
                os.kill(os.getpid(), signal.SIGKILL)
            case 200 | 310 as token:  # takes long; never ends
                with self._clock.step():
                    _compute(2.0 if token == 200 else 600.0)
            case 300:  # never comes to its end
                self._send_chunk(request, (301,), last=False)
                return
            case 400:
                self._channel.send(
                    messages.RequestRefused(
                        request_id=request.request_id, message="full", param=None, status=429
                    )
                )
                return
            case 500:
                self._channel.send(messages.Fatal(message="ZeroDivisionError", traceback="here"))
                raise SystemExit(4)
            case _:
                pass
        if self._lie == "hangs in the self test":
            time.sleep(600)
        if self._lie == "dies in the self test":
            os.kill(os.getpid(), signal.SIGKILL)
        self._count(request.max_tokens, speculative=speculative)
        last = request.prompt_token_ids[-1]
        step = 2 if self._lie == "other output when it speculates" and speculative else 1
        tokens = tuple(last + step * i for i in range(1, request.max_tokens + 1))
        self._send_chunk(request, tokens[:1], last=False)
        self._send_chunk(request, tokens[1:], last=True)

    def _send_abort(self, request_id: str) -> None:
        chunk = GenerationChunk(
            request_id=request_id,
            token_ids=(),
            text="",
            logprobs=(),
            finish_reason="abort",
            counters=RequestCounters(
                drafted=0, accepted=0, verify_rounds=0, plain_steps=0, emitted=0
            ),
        )
        self._channel.send(messages.Chunks(chunks=(chunk,)))

    def _count(self, num_tokens: int, *, speculative: bool) -> None:
        stats = self._stats
        drafting = speculative != (self._lie == "drafts when it should not")
        if self._lie == "drafts nothing":
            drafting = False
        self._stats = (
            dataclasses.replace(
                stats, drafted=stats.drafted + 3, verify_rounds=stats.verify_rounds + 1
            )
            if drafting
            else dataclasses.replace(stats, plain_steps=stats.plain_steps + num_tokens)
        )

    def _send_chunk(
        self, request: GenerationRequest, tokens: tuple[int, ...], *, last: bool
    ) -> None:
        logprob = float("nan") if self._lie == "not a number" else -0.5
        chunk = GenerationChunk(
            request_id=request.request_id,
            token_ids=tokens,
            text="",
            logprobs=tuple(
                TokenLogprob(token_id=token, logprob=logprob, top=((token, logprob), (0, -3.0)))
                for token in tokens
            ),
            finish_reason="length" if last else None,
            counters=RequestCounters(
                drafted=0, accepted=0, verify_rounds=0, plain_steps=0, emitted=len(tokens)
            ),
        )
        self._channel.send(messages.Chunks(chunks=(chunk,)))


def _compute(seconds: float) -> None:
    """Named in the stack of a worker that hangs."""
    time.sleep(seconds)


def _build(lie: str, runner: PhaseRunner) -> None:
    """Reports every phase as done, all but the one that the lie leaves out."""
    for phase in WORKER_PHASES:
        if lie == "no records after load_draft" and phase is Phase.KV_CACHE:
            break
        runner.run(phase, lambda: 1, details=lambda one: {"one": one})


def main(lie: str, descriptor: int, make_runner: Callable[..., PhaseRunner] = PhaseRunner) -> int:
    faulthandler.enable()  # as the real worker does
    channel = WorkerChannel(socket.socket(fileno=descriptor))
    clock = StepClock()
    inbox = open_inbox(channel, clock)
    if not isinstance(inbox.wait(), messages.Build):
        return 1
    if lie == "sends garbage":
        sys.stdout.flush()
        os.write(descriptor, b"\xff" * 64)
        time.sleep(600)
    runner = make_runner(emit=lambda record: channel.send(messages.PhaseReported(record=record)))
    try:
        _build(lie, runner)
    except PhaseError as error:
        channel.send(messages.BuildFailed(cause=error.cause, traceback=traceback.format_exc()))
        return error.exit_code
    if lie == "answers too early":
        channel.send(messages.Pong(call=0, step_seconds=None))
    channel.send(messages.Built())
    return ScriptedWorker(lie, channel, inbox, clock).serve()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], int(sys.argv[3])))
