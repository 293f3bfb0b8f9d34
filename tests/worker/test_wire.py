import asyncio
import socket
import threading

import pytest

from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy
from specserve.engine import (
    EngineStats,
    GenerationChunk,
    GenerationRequest,
    Mode,
    PolicyState,
    RequestCounters,
    Sampling,
    TokenLogprob,
)
from specserve.errors import EngineError, Problem
from specserve.plan import Plan
from specserve.rule_ids import RuleId
from specserve.worker import messages
from specserve.worker.messages import Command, Report
from specserve.worker.phases import Phase, PhaseRecord
from specserve.worker.wire import (
    MAX_FRAME_BYTES,
    WorkerChannel,
    command_decoder,
    encode,
    read_frame,
    report_decoder,
)

STATE = PolicyState(
    policy=BatchThresholdPolicy(
        kind="batch_threshold", disable_above=8, resume_at=6, min_dwell_rounds=4, while_off="warm"
    ),
    mode=Mode.SPECULATIVE,
    num_steps=3,
    reason="2 running decodes, at most 8",
    since_seconds=1.25,
    switches=2,
)
STATS = EngineStats(
    drafted=9,
    accepted=4,
    emitted=7,
    verify_rounds=3,
    plain_steps=0,
    draft_calls=9,
    draft_upkeep_calls=0,
    verify_calls=3,
    prefill_tokens=11,
    accepted_by_position=(2, 1, 1),
    seconds_by_mode={"speculative": 0.5},
    emitted_by_mode={"speculative": 7},
    running=1,
    running_decodes=1,
    queued=0,
    free_slots=3,
    total_slots=4,
    policy=STATE,
)
REQUEST = GenerationRequest(
    request_id="naïve-🙂",
    prompt_token_ids=(1, 2, 3),
    max_tokens=5,
    sampling=Sampling(
        temperature=0.7, top_p=0.9, top_k=None, min_p=0.0, seed=2**63 - 1, logit_bias={7: -1.5}
    ),
    stop=("\n",),
    stop_token_ids=(0,),
    top_logprobs=2,
    speculation=True,
    ignore_eos=False,
)
CHUNK = GenerationChunk(
    request_id="a",
    token_ids=(5, 6),
    text="é",
    logprobs=(TokenLogprob(token_id=5, logprob=-0.5, top=((5, -0.5), (9, -1.0))),),
    finish_reason="stop",
    counters=RequestCounters(drafted=3, accepted=1, verify_rounds=1, plain_steps=0, emitted=2),
)
RECORD = PhaseRecord(
    phase=Phase.KV_CACHE,
    event="done",
    rank=0,
    time="2026-01-01T00:00:00.000+00:00",
    seconds=0.5,
    host_bytes_before=1,
    host_bytes_after=2,
    device_bytes_before=None,
    device_bytes_after=None,
    details={"kv_bytes": 3, "nested": {"list": [1, "two"]}},
)

COMMANDS: tuple[Command, ...] = (
    messages.Build(plan_json=b"{}"),
    messages.Submit(request=REQUEST),
    messages.Abort(request_id="a"),
    messages.SetPolicy(call=1, policy_json=b"{}"),
    messages.ReadStats(call=2),
    messages.Ping(call=3),
    messages.Shutdown(),
)
REPORTS: tuple[Report, ...] = (
    messages.PhaseReported(record=RECORD),
    messages.Built(),
    messages.BuildFailed(cause="c", traceback="t"),
    messages.Chunks(chunks=(CHUNK,)),
    messages.RequestRefused(request_id="a", message="m", param="prompt", status=429),
    messages.RequestFailed(request_id="a", message="m"),
    messages.StatsRead(call=1, stats_json=messages.STATS.dump_json(STATS)),
    messages.PolicySet(call=1, state_json=messages.POLICY_STATE.dump_json(STATE)),
    messages.PolicyRefused(
        call=1,
        problems=(
            Problem(
                rule=RuleId.POLICY_NOT_BUILT_FOR,
                key="policy",
                value="always",
                expected="a draft",
                fix="x",
            ),
        ),
    ),
    messages.Pong(call=1, step_seconds=None),
    messages.Happened(kind="policy.switch", fields={"mode": "plain"}),
    messages.Fatal(message="m", traceback="t"),
)


def _name(message: object) -> str:
    return type(message).__name__


@pytest.mark.parametrize("command", COMMANDS, ids=_name)
def test_a_command_arrives_as_it_was_sent(command: Command) -> None:
    assert command == command_decoder().body(encode(command)[4:])


@pytest.mark.parametrize("report", REPORTS, ids=_name)
def test_a_report_arrives_as_it_was_sent(report: Report) -> None:
    assert report == report_decoder().body(encode(report)[4:])


def test_the_samples_cover_both_unions() -> None:
    assert set(Command.__args__) == {type(command) for command in COMMANDS}
    assert set(Report.__args__) == {type(report) for report in REPORTS}


def test_stats_and_policy_state_survive_their_json() -> None:
    assert STATS == messages.STATS.validate_json(messages.STATS.dump_json(STATS))
    assert STATE == messages.POLICY_STATE.validate_json(messages.POLICY_STATE.dump_json(STATE))


def test_a_policy_survives_its_json() -> None:
    policy = AlwaysPolicy(kind="always")

    assert policy == messages.POLICY.validate_json(messages.POLICY.dump_json(policy))


def test_a_plan_survives_its_json(plan: Plan) -> None:
    assert plan == messages.PLAN.validate_json(messages.PLAN.dump_json(plan))


def test_a_command_is_no_report() -> None:
    with pytest.raises(EngineError, match="garbled"):
        report_decoder().body(encode(messages.Shutdown())[4:])


@pytest.mark.parametrize("body", [b"", b"\xc1", b"\x80", b"\x93\x01\x02\x03", b"GET / HTTP/1.1"])
def test_bytes_that_are_no_message_are_refused(body: bytes) -> None:
    with pytest.raises(EngineError, match="garbled"):
        command_decoder().body(body)


def test_an_absurd_length_is_refused_before_anything_is_read() -> None:
    with pytest.raises(EngineError, match="a frame of 4294967295 bytes"):
        report_decoder().length(b"\xff\xff\xff\xff")


def test_a_message_longer_than_a_frame_is_refused_by_its_sender() -> None:
    with pytest.raises(EngineError, match=r"Build: .* more than a frame"):
        encode(messages.Build(plan_json=b"x" * MAX_FRAME_BYTES))


def test_frames_cross_a_socket_both_ways() -> None:
    """Also when a frame comes in pieces, and many threads send at once."""
    ours, theirs = socket.socketpair()
    channel = WorkerChannel(theirs)
    commands = b"".join(encode(command) for command in COMMANDS)

    async def supervisor() -> list[Report | None]:
        reader, writer = await asyncio.open_unix_connection(sock=ours)
        for start in range(0, len(commands), 7):
            writer.write(commands[start : start + 7])
            await writer.drain()
        decoder = report_decoder()
        reports: list[Report | None] = []
        for _ in range(40):
            report = await read_frame(reader, decoder)
            reports.append(report)
        writer.close()
        await writer.wait_closed()
        return reports

    def worker() -> None:
        received.extend(channel.receive() for _ in COMMANDS)
        senders = [threading.Thread(target=_send_ten, args=(channel, i)) for i in range(4)]
        for sender in senders:
            sender.start()
        for sender in senders:
            sender.join()
        received.append(channel.receive())

    received: list[Command | None] = []
    thread = threading.Thread(target=worker)
    thread.start()
    reports = asyncio.run(supervisor())
    thread.join()
    channel.close()

    assert [*COMMANDS, None] == received
    calls = sorted(report.call for report in reports if isinstance(report, messages.Pong))
    assert list(range(40)) == calls


def _send_ten(channel: WorkerChannel, thread: int) -> None:
    for number in range(10):
        channel.send(messages.Pong(call=10 * thread + number, step_seconds=0.5))


@pytest.mark.parametrize("sent", [0, 2, 4, 9])
def test_a_stream_that_ends_in_the_middle_of_a_frame_has_ended(sent: int) -> None:
    ours, theirs = socket.socketpair()
    channel = WorkerChannel(theirs)
    ours.sendall(encode(messages.Submit(request=REQUEST))[:sent])
    ours.close()

    assert channel.receive() is None
    channel.close()
