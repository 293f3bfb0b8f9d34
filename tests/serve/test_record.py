import asyncio
from pathlib import Path

from structlog.testing import capture_logs

from specserve.serve.record import RunRecord
from specserve.server.history import RunHistory
from specserve.server.state import ServerState, Starting
from specserve.worker.events import EventLog, read_events
from specserve.worker.phases import Phase, PhaseEvent, PhaseRecord


def _record(phase: Phase, event: PhaseEvent) -> PhaseRecord:
    return PhaseRecord(
        phase=phase,
        event=event,
        rank=0,
        time="2026-01-01T00:00:00.000+00:00",
        seconds=1.5,
        host_bytes_before=2**20,
        host_bytes_after=2**21,
        device_bytes_before=None,
        device_bytes_after=None,
        details={"event": "a detail may have any name"},
    )


def test_a_phase_goes_to_the_log_and_to_the_server_state(tmp_path: Path) -> None:
    async def main() -> ServerState:
        state = ServerState(phase="attributes")
        events = EventLog(tmp_path / "events.jsonl")
        record = RunRecord(events, state, RunHistory())
        record.phase(_record(Phase.KV_CACHE, "start"))
        record.phase(_record(Phase.KV_CACHE, "failed"))
        events.close()
        return state

    with capture_logs() as logs:
        state = asyncio.run(main())

    assert Starting(phase="kv_cache") == state.lifecycle
    assert [("phase.start", "info", "kv_cache"), ("phase.failed", "error", "kv_cache")] == [
        (line["event"], line["log_level"], line["phase"]) for line in logs
    ]
    assert (1.5, "1 -> 2 MiB") == (logs[1]["seconds"], logs[1]["host_memory"])


def test_the_dashboard_hears_of_phases_and_events(tmp_path: Path) -> None:
    history = RunHistory()

    async def main() -> None:
        events = EventLog(tmp_path / "events.jsonl")
        record = RunRecord(events, ServerState(phase="attributes"), history)
        record.phase(_record(Phase.KV_CACHE, "start"))
        record.event("policy.switch", {"mode": "plain"})
        events.close()

    with capture_logs():
        asyncio.run(main())

    assert [("kv_cache", 1767225600.0 - 1.5)] == [
        (each.phase, each.began) for each in history.phases
    ]
    assert [("policy.switch", {"mode": "plain"})] == [
        (event.kind, event.fields) for event in history.events(0)
    ]


def test_the_level_of_an_event_is_in_its_name(tmp_path: Path) -> None:
    async def main() -> None:
        events = EventLog(tmp_path / "events.jsonl")
        record = RunRecord(events, ServerState(phase="attributes"), RunHistory())
        for kind in ("policy.switch", "warning.plan", "build.failed", "worker.hung"):
            record.event(kind, {})
        events.close()

    with capture_logs() as logs:
        asyncio.run(main())

    assert ["info", "warning", "error", "error"] == [line["log_level"] for line in logs]


def test_an_event_goes_to_the_log_and_to_its_file(tmp_path: Path) -> None:
    async def main() -> None:
        events = EventLog(tmp_path / "events.jsonl")
        record = RunRecord(events, ServerState(phase="attributes"), RunHistory())
        record.event("policy.switch", {"mode": "plain"})
        record.event("warning.useless_draft", {"draft": "d"})
        events.close()

    with capture_logs() as logs:
        asyncio.run(main())

    assert [("policy.switch", "info"), ("warning.useless_draft", "warning")] == [
        (line["event"], line["log_level"]) for line in logs
    ]
    assert ["policy.switch", "warning.useless_draft"] == [
        event.kind for event in read_events(tmp_path / "events.jsonl")
    ]
