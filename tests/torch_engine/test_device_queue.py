import threading

import pytest
import torch

from specserve.torch_engine.device_queue import DeviceWork, InlineQueue, ThreadQueue, open_queue
from specserve.torch_engine.round import Emitted


def emitted(token: int) -> Emitted:
    return Emitted(torch.tensor([[token]]), torch.tensor([0]), None)


def fail() -> None:
    raise RuntimeError("the device broke")


@pytest.fixture(params=[False, True])
def own_thread(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def test_what_is_emitted_comes_back_in_order(own_thread: bool) -> None:
    queue = open_queue(own_thread=own_thread)
    work: DeviceWork = [lambda: emitted(1), lambda: None, lambda: emitted(2)]
    handles = [queue.submit(work), queue.submit([lambda: emitted(3)])]
    runs = [[one.runs() for one in handle.result()] for handle in handles]
    queue.close()
    queue.close()

    assert [[[[1]], [[2]]], [[[3]]]] == runs


def test_a_failure_comes_out_at_the_latest_with_the_result(own_thread: bool) -> None:
    queue = open_queue(own_thread=own_thread)

    with pytest.raises(RuntimeError, match="the device broke"):
        queue.submit([fail]).result()
    queue.close()


def test_a_thread_of_its_own_hands_over_without_waiting_and_else_the_work_is_done_at_once() -> None:
    may_go_on = threading.Event()

    def wait() -> Emitted:
        may_go_on.wait(timeout=30)
        return emitted(1)

    queue = ThreadQueue()
    handle = queue.submit([wait])  # an inline queue would never come back from this
    may_go_on.set()
    done = handle.result()
    queue.close()
    here = threading.get_ident()
    threads: list[int] = []
    InlineQueue().submit([lambda: threads.append(threading.get_ident())])

    assert [[1]] == done[0].runs()
    assert [here] == threads
