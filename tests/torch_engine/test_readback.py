import pytest
import torch

from specserve.torch_engine.readback import Readback

needs_gpu = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU")


def test_what_is_on_the_host_is_handed_on_as_it_is() -> None:
    tokens, counts = torch.tensor([[3, 4]]), torch.tensor([1])

    first, second = Readback((tokens, counts)).wait()

    assert tokens is first
    assert counts is second


@pytest.mark.gpu
@needs_gpu
def test_it_holds_what_the_work_before_it_made_and_not_what_came_later() -> None:
    """The next round may overwrite a buffer while this one's copy is still under way."""
    values = torch.zeros(1_000_000, device="cuda", dtype=torch.int64)
    torch.cuda._sleep(50_000_000)  # type: ignore[no-untyped-call]
    values += 7
    readback = Readback((values, values[:2]))
    values += 1
    all_values, two = readback.wait()

    assert not all_values.is_cuda
    assert {7} == set(all_values.tolist())
    assert [7, 7] == two.tolist()


@pytest.mark.gpu
@needs_gpu
def test_it_waits_for_no_more_than_what_was_asked_for() -> None:
    values = torch.full((4,), 5, device="cuda")
    readback = Readback((values,))
    torch.cuda._sleep(2_000_000_000)  # type: ignore[no-untyped-call]  # about a second
    later = torch.cuda.Event()  # type: ignore[no-untyped-call]
    later.record()
    (result,) = readback.wait()

    assert [5, 5, 5, 5] == result.tolist()
    assert not later.query()  # type: ignore[no-untyped-call]
