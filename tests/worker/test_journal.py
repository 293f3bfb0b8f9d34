from pathlib import Path

import pytest

from specserve.worker.events import Event, EventLog, read_events
from specserve.worker.journal import Journal, JournalError, read_journal


def _event(kind: str) -> Event:
    return Event(time="2026-01-01T00:00:00.000+00:00", kind=kind, fields={"n": 1})


def test_a_record_is_in_the_file_once_append_returns(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    journal: Journal[Event] = Journal(path)

    journal.append(_event("one"))

    assert (_event("one"),) == read_journal(path, Event)
    journal.close()


def test_reopening_appends(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    for kind in ("one", "two"):
        journal: Journal[Event] = Journal(path)
        journal.append(_event(kind))
        journal.close()

    assert (_event("one"), _event("two")) == read_journal(path, Event)


@pytest.mark.parametrize("cut", [1, 2, 30])
def test_a_last_line_that_was_being_written_is_left_out(tmp_path: Path, cut: int) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append("one", {})
    log.append("two", {})
    log.close()
    path.write_bytes(path.read_bytes()[:-cut])

    assert ["one"] == [event.kind for event in read_events(path)]


def test_another_broken_line_is_named(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    log = EventLog(path)
    log.append("one", {})
    log.close()
    path.write_bytes(path.read_bytes() + b'{"time": 3}\n' + path.read_bytes())

    with pytest.raises(JournalError, match=r"events\.jsonl:2: not a Event"):
        read_events(path)


def test_an_empty_file_holds_no_record(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.touch()

    assert () == read_events(path)


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match=r"nothing\.jsonl: cannot be read"):
        read_events(tmp_path / "nothing.jsonl")


def test_a_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    with pytest.raises(JournalError, match="cannot be opened for appending"):
        EventLog(tmp_path / "no_such_folder" / "events.jsonl")


def test_a_full_disk_is_an_error_and_not_a_lost_record() -> None:
    journal: Journal[Event] = Journal(Path("/dev/full"))

    with pytest.raises(JournalError, match="/dev/full: cannot be written"):
        journal.append(_event("one"))

    with pytest.raises(OSError, match="No space left"):
        journal.close()


def test_appending_to_a_closed_journal_is_an_error(tmp_path: Path) -> None:
    journal: Journal[Event] = Journal(tmp_path / "events.jsonl")
    journal.close()
    journal.close()

    with pytest.raises(JournalError, match="cannot be written"):
        journal.append(_event("one"))
