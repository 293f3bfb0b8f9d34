import asyncio

from specserve.server.history import MAX_EVENTS, MAX_SAMPLES, RunHistory
from tests.server.live import make_engine

STATS = asyncio.run(make_engine().stats())


def test_a_phase_keeps_its_beginning_and_gets_its_end() -> None:
    run = RunHistory()
    run.note_phase("load_target", "start", 100.0, 0.0, {})
    assert (100.0, None) == (run.phases[0].began, run.phases[0].seconds)
    run.note_phase("load_target", "done", 102.5, 2.5, {"tensors": 9})

    [phase] = run.phases
    assert (100.0, 2.5, "done", {"tensors": 9}) == (
        phase.began,
        phase.seconds,
        phase.event,
        phase.details,
    )


def test_what_undoes_a_phase_does_not_change_how_long_it_took() -> None:
    run = RunHistory()
    run.note_phase("kv_cache", "start", 100.0, 0.0, {})
    run.note_phase("kv_cache", "done", 102.0, 2.0, {})
    run.note_phase("kv_cache", "undone", 110.0, 0.1, {})

    assert [("undone", 100.0, 2.0)] == [
        (phase.event, phase.began, phase.seconds) for phase in run.phases
    ]


def test_a_phase_that_is_only_recorded_at_its_end_began_that_much_earlier() -> None:
    run = RunHistory()
    run.note_phase("cuda_graphs", "skipped", 100.0, 0.5, {})

    assert (99.5, 0.5) == (run.phases[0].began, run.phases[0].seconds)


def test_only_what_is_newer_is_told() -> None:
    run = RunHistory()
    run.note_stats(STATS)
    run.note_event("policy.switch", {"to_num_steps": 0})
    seen = run.last_number
    run.note_stats(STATS)
    run.note_event("policy.switch", {"to_num_steps": 3})

    assert 2 == seen
    assert [3] == [sample.number for sample in run.samples(seen)]
    assert [{"to_num_steps": 3}] == [event.fields for event in run.events(seen)]
    assert ([], []) == (run.samples(run.last_number), run.events(run.last_number))


def test_memory_is_bounded_and_the_newest_stay() -> None:
    run = RunHistory()
    for number in range(2 * MAX_SAMPLES):
        run.note_stats(STATS)
        run.note_event("policy.switch", {"number": number})

    assert (MAX_SAMPLES, MAX_EVENTS) == (len(run.samples(0)), len(run.events(0)))
    assert {"number": 2 * MAX_SAMPLES - 1} == run.events(0)[-1].fields
