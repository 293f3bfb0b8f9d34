from datetime import UTC, datetime
from pathlib import Path

from specserve.worker.events import EventLog, read_events


def test_events_keep_their_order_and_their_time(tmp_path: Path) -> None:
    before = datetime.now(UTC)
    log = EventLog(tmp_path / "events.jsonl")
    log.append("policy.switch", {"mode": "plain", "running_decodes": 9})
    log.append("worker.died", {})
    log.close()

    first, second = read_events(tmp_path / "events.jsonl")

    assert ("policy.switch", {"mode": "plain", "running_decodes": 9}) == (first.kind, first.fields)
    assert "worker.died" == second.kind
    assert abs((datetime.fromisoformat(first.time) - before).total_seconds()) < 60
    assert first.time <= second.time
