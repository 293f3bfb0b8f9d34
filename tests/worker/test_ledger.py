from pathlib import Path

from specserve.worker.ledger import Ledger, missing_phases, read_ledger
from specserve.worker.phases import Phase, PhaseEvent, PhaseRecord


def _record(phase: Phase, event: PhaseEvent, rank: int = 0) -> PhaseRecord:
    return PhaseRecord(
        phase=phase,
        event=event,
        rank=rank,
        time="2026-01-01T00:00:00.000+00:00",
        seconds=1.5,
        host_bytes_before=10,
        host_bytes_after=20,
        device_bytes_before=None,
        device_bytes_after=None,
        details={"borrowed": ["embed_tokens"], "sizes": {"kv_bytes": 3}},
    )


def test_records_come_back_as_they_were_written(tmp_path: Path) -> None:
    records = tuple(_record(phase, "done") for phase in Phase)
    ledger = Ledger(tmp_path / "ledger.jsonl")
    for record in records:
        ledger.append(record)
    ledger.close()

    assert records == read_ledger(tmp_path / "ledger.jsonl")
    assert len(Phase) == len((tmp_path / "ledger.jsonl").read_text().splitlines())


def test_a_build_is_complete_when_every_rank_has_closed_every_phase() -> None:
    complete = [_record(phase, "done", rank) for phase in Phase for rank in range(2)]

    assert () == missing_phases(complete, 2)


def test_a_phase_that_only_started_is_missing() -> None:
    records = [_record(phase, "skipped") for phase in Phase if phase is not Phase.KV_CACHE]
    records.append(_record(Phase.KV_CACHE, "start"))

    assert ((0, Phase.KV_CACHE),) == missing_phases(records, 1)


def test_a_rank_without_any_record_misses_every_phase() -> None:
    records = [_record(phase, "failed") for phase in Phase]

    assert tuple((1, phase) for phase in Phase) == missing_phases(records, 2)


def test_an_undone_phase_was_closed_before() -> None:
    """`undone` follows a `done`; alone it closes nothing."""
    assert (0, Phase.LOAD_TARGET) in missing_phases([_record(Phase.LOAD_TARGET, "undone")], 1)
