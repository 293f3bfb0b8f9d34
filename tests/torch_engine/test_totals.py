from dataclasses import asdict

from specserve.config.policy import OffPolicy
from specserve.engine import EngineStats, Mode, PolicyState
from specserve.plan import SchedulerPlan
from specserve.policy.observation import count_round
from specserve.testing.loops import make_request
from specserve.torch_engine.admission import Admission
from specserve.torch_engine.totals import Totals

LIMITS = SchedulerPlan(
    kind="sync",
    device_thread=False,
    max_running_requests=2,
    max_queued_requests=10,
    prefill_chunk_tokens=16,
    max_kv_tokens=100,
    row_tokens=64,
)


def snapshot(totals: Totals, admission: Admission) -> EngineStats:
    policy = PolicyState(
        policy=OffPolicy(kind="off"),
        mode=Mode.PLAIN,
        num_steps=0,
        reason="off",
        since_seconds=0.0,
        switches=0,
    )
    return totals.stats(
        admission=admission, running_decodes=1, total_slots=LIMITS.max_kv_tokens, policy=policy
    )


def test_rounds_add_up_also_where_they_were_less_deep() -> None:
    """Two requests of a chain of 3, of which 3 and 1 are accepted; then one of a chain of 1."""
    totals = Totals(accepted_by_position=[0, 0, 0])
    totals.count_round(count_round(3, 3, [3, 1]))
    totals.count_round(count_round(1, 1, [1]))
    stats = snapshot(totals, Admission(LIMITS))

    assert (7, 5, 3) == (stats.drafted, stats.accepted, stats.verify_rounds)
    assert (3, 1, 1) == stats.accepted_by_position


def test_tokens_count_for_the_mode_that_made_them() -> None:
    totals = Totals(accepted_by_position=[])
    totals.count_emitted(Mode.PLAIN, 1)
    totals.count_emitted(Mode.SPECULATIVE, 4)
    totals.count_emitted(Mode.SPECULATIVE, 2)
    stats = snapshot(totals, Admission(LIMITS))

    assert 7 == stats.emitted
    assert {"plain": 1, "speculative": 6} == stats.emitted_by_mode
    assert {"plain": 0.0, "speculative": 0.0} == stats.seconds_by_mode


def test_a_snapshot_stays_as_it_was() -> None:
    totals = Totals(accepted_by_position=[0, 0])
    before = snapshot(totals, Admission(LIMITS))
    expected = asdict(before)
    totals.count_round(count_round(2, 2, [2]))
    totals.count_emitted(Mode.SPECULATIVE, 3)
    totals.seconds_by_mode[Mode.SPECULATIVE] += 1.0

    assert expected == asdict(before)


def test_slots_and_places_are_those_of_the_admission() -> None:
    """One request runs and holds its prompt and all that it may generate; another waits."""
    admission = Admission(LIMITS)
    admission.enqueue(make_request([1] * 30, request_id="a", max_tokens=20))
    admission.enqueue(make_request([1] * 30, request_id="b", max_tokens=25))
    admission.admit()
    stats = snapshot(Totals(accepted_by_position=[]), admission)

    assert (1, 1, 1) == (stats.running, stats.running_decodes, stats.queued)
    assert (50, 100) == (stats.free_slots, stats.total_slots)
