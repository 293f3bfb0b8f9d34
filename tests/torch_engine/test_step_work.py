"""Gathering a step's work: what is counted for it, and what the host then knows of the rows."""

from pathlib import Path

import pytest
import torch

from specserve.engine import GenerationRequest
from specserve.testing.checkpoints import byte_tokenizer, write_draft, write_target
from specserve.testing.loops import Speculation, make_request, open_loop
from specserve.torch_engine.active import ActiveRequest, Output
from specserve.torch_engine.bounds import RowBounds
from specserve.torch_engine.detokenize import token_decoder
from specserve.torch_engine.drafter import Drafter
from specserve.torch_engine.group import Depth, Group, make_group
from specserve.torch_engine.lineup import Move
from specserve.torch_engine.loop import Loop
from specserve.torch_engine.prefill import Prefill
from specserve.torch_engine.step_work import StepWork
from specserve.torch_engine.totals import Totals

NUM_STEPS = 3


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("random")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


@pytest.fixture
def loop(random_pair: tuple[Path, Path]) -> Loop:
    speculation = Speculation(draft_folder=random_pair[1], num_steps=NUM_STEPS)
    return open_loop(random_pair[0], speculation)


@pytest.fixture
def drafter(loop: Loop) -> Drafter:
    drafter = loop._scheduler._drafter
    assert drafter is not None
    return drafter


@pytest.fixture
def work(loop: Loop) -> StepWork:
    totals = Totals(accepted_by_position=[0] * NUM_STEPS)
    return StepWork(serial=5, decoder=loop._scheduler._decoder, totals=totals)


def decoding(length: int, num_pairs: int) -> ActiveRequest:
    """A request with exactly so many tokens cached, and so many draft entries missing."""
    request = make_request([1])
    output = Output(request, frozenset(), token_decoder(byte_tokenizer(320)))
    bounds = RowBounds(length=length, num_pairs=num_pairs, has_hole=False)
    return ActiveRequest(request, output, bounds, speculates=True)


def group_of(requests: list[ActiveRequest]) -> Group:
    return make_group(0, [one.request for one in requests], 320, torch.device("cpu"))


def known(request: ActiveRequest) -> tuple[int, int]:
    return request.bounds.max_length, request.bounds.max_pairs


def test_a_speculative_round_is_so_many_draft_passes_and_one_verify_for_all(
    work: StepWork, drafter: Drafter
) -> None:
    """Until it is settled, every row may have grown by all that was drafted and one."""
    requests = [decoding(10, 1), decoding(20, 2)]
    depth = Depth(num_steps=NUM_STEPS, topk=1, num_draft_tokens=NUM_STEPS + 1)
    work.speculate(drafter, group_of(requests), requests, depth)

    assert (3, 1) == (work.totals.draft_calls, work.totals.verify_calls)
    assert [(14, 4), (24, 4)] == [known(one) for one in requests]
    assert [(requests, depth, False)] == work.passes
    assert 1 == len(work.calls)
    requests[0].bounds.settle(work.serial, NUM_STEPS, 2)
    assert (12, 2) == known(requests[0])


def test_a_plain_round_calls_no_draft(work: StepWork) -> None:
    requests = [decoding(10, 1)]
    work.decode_plainly(None, group_of(requests), requests, keeps_up=False)

    assert (0, 0, 0) == (
        work.totals.draft_calls,
        work.totals.draft_upkeep_calls,
        work.totals.verify_calls,
    )
    assert (11, 2) == known(requests[0])
    assert [(requests, None, False)] == work.passes


def test_keeping_up_is_one_more_draft_pass_and_leaves_one_entry_to_make(
    work: StepWork, drafter: Drafter
) -> None:
    requests = [decoding(10, 1), decoding(12, 3)]
    group = group_of(requests)
    work.keep_up(drafter, group, requests)
    work.decode_plainly(drafter, group, requests, keeps_up=True)

    assert (0, 1) == (work.totals.draft_calls, work.totals.draft_upkeep_calls)
    assert [(11, 1), (13, 1)] == [known(one) for one in requests]
    assert 2 == len(work.calls)
    assert 1 == len(work.passes)


@pytest.mark.parametrize(("num_missing", "num_passes"), [(2, 1), (17, 1), (18, 2), (40, 3)])
def test_a_refill_comes_in_chunks_and_leaves_the_newest_entry_to_the_round(
    work: StepWork, drafter: Drafter, num_missing: int, num_passes: int
) -> None:
    bounds = RowBounds(length=50, num_pairs=num_missing, has_hole=False)
    work.refill(drafter, 0, bounds, 16)

    assert num_passes == len(work.calls) == work.totals.draft_upkeep_calls
    assert (50, 1) == (bounds.max_length, bounds.max_pairs)


def prompt(name: str, num_tokens: int) -> GenerationRequest:
    return make_request(range(num_tokens), request_id=name)


def test_prompts_in_one_pass_are_one_call_and_one_draft_pass(
    work: StepWork, drafter: Drafter
) -> None:
    """The draft has nothing to do for a prompt of one token."""
    ended = Prefill(prompt("a", 6), 0, speculates=True)
    begun = Prefill(prompt("b", 9), 1, speculates=True)
    chunks = [one.advance(6, extends_draft=True, may_skip=True) for one in (ended, begun)]
    requests = [decoding(6, 1)]
    work.prefill(drafter, chunks, group_of(requests), requests)
    single = Prefill(prompt("c", 1), 2, speculates=True)
    chunk = single.advance(1, extends_draft=True, may_skip=True)
    work.prefill(drafter, [chunk], group_of(requests), requests)

    assert (13, 1) == (work.totals.prefill_tokens, work.totals.draft_upkeep_calls)
    assert 2 == len(work.calls)
    assert [(requests, None, True)] * 2 == work.passes


@torch.inference_mode()
def test_a_chunk_that_ends_no_prompt_emits_nothing(work: StepWork, drafter: Drafter) -> None:
    chunk = Prefill(prompt("a", 9), 0, speculates=True).advance(
        4, extends_draft=True, may_skip=True
    )
    work.prefill(drafter, [chunk], None, [])

    assert [] == work.passes
    assert [None] == [call() for call in work.calls]


def test_rows_are_moved_in_the_order_that_was_asked_for(work: StepWork) -> None:
    """Row 0 goes to 2, then 0 and 1 change places: the other way about it would be another."""
    tokens = work.decoder.rows.tokens
    tokens[:3] = torch.tensor([[10], [11], [12]])
    work.move_rows(
        [
            Move(source=0, destination=2, num_tokens=1, exchange=False),
            Move(source=0, destination=1, num_tokens=1, exchange=True),
        ]
    )
    untouched = tokens[:3, 0].tolist()
    for call in work.calls:
        call()

    assert [10, 11, 12] == untouched
    assert [11, 10, 10] == tokens[:3, 0].tolist()
