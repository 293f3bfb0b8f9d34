import pytest

from specserve.engine import GenerationRequest
from specserve.errors import RequestError
from specserve.plan import SchedulerPlan
from specserve.testing.loops import make_request
from specserve.torch_engine.admission import Admission


def limits(running: int = 2, queued: int = 1, budget: int = 100) -> SchedulerPlan:
    return SchedulerPlan(
        kind="sync",
        device_thread=False,
        max_running_requests=running,
        max_queued_requests=queued,
        prefill_chunk_tokens=16,
        max_kv_tokens=budget,
        row_tokens=128,
    )


def request(name: str, tokens: int = 10) -> GenerationRequest:
    return make_request([1], request_id=name, max_tokens=tokens - 1)


def admitted(admission: Admission) -> list[str]:
    names = []
    while (one := admission.admit()) is not None:
        names.append(one.request_id)
    return names


def test_first_come_first_served_up_to_the_limit() -> None:
    admission = Admission(limits(running=2, queued=2))
    for name in "abcd":
        admission.enqueue(request(name))

    assert ["a", "b"] == admitted(admission)
    admission.release("a")
    assert ["c"] == admitted(admission)
    assert (2, 1) == (admission.num_running, admission.num_queued)


def test_what_does_not_fit_the_budget_now_waits_and_holds_back_those_behind_it() -> None:
    admission = Admission(limits(running=4, queued=4, budget=100))
    for name, tokens in (("a", 60), ("b", 50), ("c", 10)):
        admission.enqueue(request(name, tokens))

    assert ["a"] == admitted(admission)
    admission.release("a")
    assert ["b", "c"] == admitted(admission)
    assert 40 == admission.free_tokens


def test_only_those_that_would_have_to_wait_count_against_the_queue() -> None:
    admission = Admission(limits(running=2, queued=1))
    for name in "abc":
        admission.enqueue(request(name))

    with pytest.raises(RequestError, match="max_queued_requests is 1") as refused:
        admission.enqueue(request("d"))

    assert 429 == refused.value.status


def test_without_a_queue_there_is_still_service() -> None:
    admission = Admission(limits(running=1, queued=0))
    admission.enqueue(request("a"))

    with pytest.raises(RequestError):
        admission.enqueue(request("b"))
    admitted(admission)
    with pytest.raises(RequestError):
        admission.enqueue(request("b"))
    admission.release("a")
    admission.enqueue(request("b"))


def test_a_full_budget_counts_as_waiting_too() -> None:
    admission = Admission(limits(running=8, queued=0, budget=100))
    admission.enqueue(request("a", 90))

    with pytest.raises(RequestError):
        admission.enqueue(request("b", 20))


def test_an_id_in_use_is_refused_and_free_again_after_its_end() -> None:
    admission = Admission(limits())
    admission.enqueue(request("a"))
    with pytest.raises(RequestError, match="'a' is already in use"):
        admission.enqueue(request("a"))
    admitted(admission)
    with pytest.raises(RequestError, match="'a' is already in use"):
        admission.enqueue(request("a"))
    admission.release("a")

    admission.enqueue(request("a"))


def test_a_waiting_request_can_be_withdrawn() -> None:
    admission = Admission(limits())
    admission.enqueue(request("a"))

    withdrawn = admission.withdraw("a")

    assert withdrawn is not None
    assert admission.withdraw("a") is None
    assert [] == admitted(admission)
