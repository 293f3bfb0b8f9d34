from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import torch

from specserve.errors import EngineError
from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.plans import draft_plan, target_plan
from specserve.torch_engine.borrow import borrow
from specserve.torch_engine.draft import Draft
from specserve.torch_engine.linear import speed_up
from specserve.torch_engine.target import Target
from specserve.torch_engine.weights import load_draft, load_target

CPU = torch.device("cpu")
AUX = (2, 4, 5)


@contextmanager
def threads(num_threads: int) -> Iterator[None]:
    """The number of threads is torch's own state: give it back."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def load_pair(
    folder: Path, *, vocab_size: int = 320, draft_vocab_size: int = 320
) -> tuple[Target, Draft]:
    """A pair that has borrowed nothing yet."""
    target_folder = write_target(folder / "target", architecture="llama", vocab_size=vocab_size)
    draft_folder = write_draft(
        folder / "draft",
        target_folder=target_folder,
        draft_vocab_size=draft_vocab_size,
        with_embed=True,
    )
    target = load_target(target_plan(target_folder), AUX, CPU)
    plan = draft_plan(draft_folder, aux_layer_inputs=AUX, borrowed=())
    return target, load_draft(plan, target, CPU)


def test_tensors_are_shared_and_modules_are_not(tmp_path: Path) -> None:
    """Freeing the draft must leave the target whole."""
    target, draft = load_pair(tmp_path)

    borrow(draft, target, ("embed_tokens", "lm_head"), torch.float32)

    assert draft.embed_tokens.weight is target.embed_tokens.weight
    assert draft.lm_head.weight is target.lm_head.weight
    del draft.lm_head.weight
    assert target.lm_head.weight.shape == (320, 64)


def test_what_is_not_named_stays_the_drafts_own(tmp_path: Path) -> None:
    target, draft = load_pair(tmp_path)
    own = draft.lm_head.weight

    borrow(draft, target, ("embed_tokens",), torch.float32)

    assert own is draft.lm_head.weight


@pytest.mark.parametrize("num_threads", [1, 2], ids=["read ahead", "packed"])
def test_a_borrowed_head_is_read_as_the_target_reads_it(tmp_path: Path, num_threads: int) -> None:
    with threads(num_threads):
        target, draft = load_pair(tmp_path, vocab_size=640, draft_vocab_size=640)
    hidden = torch.randn(1, 2, 64, generator=torch.Generator().manual_seed(0))

    borrow(draft, target, ("lm_head",), torch.float32)

    assert target.lm_head.reads_ahead is draft.lm_head.reads_ahead
    assert torch.equal(target.lm_head(hidden), draft.lm_head(hidden))


def test_another_dtype_takes_a_converted_copy_even_of_packed_weights(tmp_path: Path) -> None:
    target, draft = load_pair(tmp_path, vocab_size=640, draft_vocab_size=640)
    plain = target.lm_head.weight.to_dense().clone()
    with threads(2):
        speed_up(target)

    borrow(draft, target, ("lm_head",), torch.bfloat16)

    assert torch.equal(plain.to(torch.bfloat16), draft.lm_head.weight)


def test_a_tensor_that_does_not_fit_is_refused_by_name(tmp_path: Path) -> None:
    target, draft = load_pair(tmp_path, draft_vocab_size=128)

    with pytest.raises(EngineError, match=r"lm_head: it needs \[128, 64\].*has \[320, 64\]"):
        borrow(draft, target, ("lm_head",), torch.float32)
