"""Chunks of prompts: their plan on the host, and what they leave in the rows."""

from pathlib import Path

import pytest
import torch
from torch import Tensor

from specserve.engine import GenerationRequest
from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.loops import Speculation, make_request, open_loop, run_requests
from specserve.torch_engine.drafter import Drafter
from specserve.torch_engine.group import make_group
from specserve.torch_engine.prefill import Chunk, Prefill, pass_chunks
from specserve.torch_engine.round import Decoder

PROMPTS = ([40] * 30, [50, 60, 70, 80, 90], [65])


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("random")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


def prefill(num_tokens: int, *, row: int = 0, speculates: bool = True) -> Prefill:
    return Prefill(make_request(range(num_tokens)), row, speculates=speculates)


def test_chunks_tile_the_prompt() -> None:
    """Only the first brings it, only the last ends it; the last token's partner is yet to come."""
    prompt = prefill(40)
    chunks = [prompt.advance(n, extends_draft=True, may_skip=True) for n in (16, 16, 8)]

    assert [(0, 16), (16, 16), (32, 8)] == [(one.start, one.num_tokens) for one in chunks]
    assert [tuple(range(40)), None, None] == [one.prompt for one in chunks]
    assert [False, False, True] == [one.ends_prompt for one in chunks]
    assert [(16, 0), (16, 16), (7, 32)] == [(one.num_pairs, one.num_held) for one in chunks]
    assert (0, 39) == (prompt.num_left, chunks[-1].covered)
    assert (40, 1, False) == bounds(prompt)


def bounds(prompt: Prefill) -> tuple[int, int, bool]:
    row = prompt.bounds
    return row.max_length, row.max_pairs, row.has_hole


def test_a_gap_is_left_open_for_what_will_fill_it() -> None:
    """Speculation was off for the first chunk; the draft goes on where it has been, or not yet."""
    prompt = prefill(20)
    prompt.advance(10, extends_draft=False, may_skip=False)
    chunk = prompt.advance(10, extends_draft=True, may_skip=False)

    assert (0, 0) == (chunk.num_pairs, chunk.covered)
    assert (20, 20, False) == bounds(prompt)


def test_a_gap_that_may_be_skipped_becomes_a_hole() -> None:
    """The newer entries lie where the older ones would have been."""
    prompt = prefill(20)
    prompt.advance(10, extends_draft=False, may_skip=True)
    chunk = prompt.advance(10, extends_draft=True, may_skip=True)

    assert (9, 0, 19) == (chunk.num_pairs, chunk.num_held, chunk.covered)
    assert (20, 1, True) == bounds(prompt)


def test_the_draft_hears_nothing_of_a_request_that_opted_out() -> None:
    chunk = prefill(8, speculates=False).advance(8, extends_draft=True, may_skip=True)

    assert (False, 0) == (chunk.feeds_draft, chunk.num_pairs)


def opened(random_pair: tuple[Path, Path]) -> tuple[Decoder, Drafter]:
    loop = open_loop(random_pair[0], Speculation(draft_folder=random_pair[1]))
    drafter = loop._scheduler._drafter
    assert drafter is not None
    return loop._scheduler._decoder, drafter


def requests() -> list[GenerationRequest]:
    return [make_request(one, request_id=str(row)) for row, one in enumerate(PROMPTS)]


def whole_prompts() -> list[Chunk]:
    return [
        Prefill(one, row, speculates=True).advance(
            len(one.prompt_token_ids), extends_draft=True, may_skip=True
        )
        for row, one in enumerate(requests())
    ]


@torch.inference_mode()
def test_prompts_that_pass_together_each_get_their_own_first_token(
    random_pair: tuple[Path, Path],
) -> None:
    decoder, drafter = opened(random_pair)
    group = make_group(0, requests(), 320, torch.device("cpu"))
    emitted = pass_chunks(decoder, drafter, whole_prompts(), group)
    alone = open_loop(random_pair[0])
    first = [run_requests(alone, [one])[0].token_ids[0] for one in requests()]

    assert emitted is not None
    assert [[token] for token in first] == emitted.runs()
    assert [len(prompt) for prompt in PROMPTS] == decoder.rows.lengths[:3].tolist()
    assert first == [int(decoder.rows.tokens[row, len(one)]) for row, one in enumerate(PROMPTS)]


@torch.inference_mode()
def test_in_pieces_or_whole_the_rows_and_the_draft_end_up_the_same(
    random_pair: tuple[Path, Path],
) -> None:
    """Pieces of one prompt pass with the whole of another, which is ready to decode before it."""
    decoder, drafter = opened(random_pair)
    device = torch.device("cpu")
    pass_chunks(decoder, drafter, whole_prompts(), make_group(0, requests(), 320, device))
    expected = contents(decoder, drafter)

    decoder, drafter = opened(random_pair)
    long, middle, short = (Prefill(one, row, speculates=True) for row, one in enumerate(requests()))
    first = long.advance(11, extends_draft=True, may_skip=True)
    none = pass_chunks(decoder, drafter, [first], None)
    ready = [
        one.advance(one.num_left, extends_draft=True, may_skip=True) for one in (middle, short)
    ]
    piece = long.advance(12, extends_draft=True, may_skip=True)
    pass_chunks(decoder, drafter, [*ready, piece], make_group(1, requests()[1:], 320, device))
    unready = int(decoder.rows.lengths[0])
    last = long.advance(7, extends_draft=True, may_skip=True)
    pass_chunks(decoder, drafter, [last], make_group(0, requests()[:1], 320, device))

    assert none is None
    assert 0 == unready
    for actual, one in zip(contents(decoder, drafter), expected, strict=True):
        torch.testing.assert_close(actual, one, rtol=1e-3, atol=1e-4)


def contents(decoder: Decoder, drafter: Drafter) -> list[Tensor]:
    """Counts, tokens, keys, values and features of the three rows, so far as they are in use."""
    rows = decoder.rows
    found = [rows.lengths[:3], rows.covered[:3], rows.draft_lengths[:3]]
    for row, prompt in enumerate(PROMPTS):
        length, held = int(rows.lengths[row]), int(rows.draft_lengths[row])
        newest = torch.tensor([[len(prompt) - 1]])
        found += [
            rows.tokens[row, : length + 1],
            *(layer[:, row, :, :length] for layer in rows.target_cache.layers),
            drafter.cache.layers[0][:, row, :, :held],
            drafter.features.read(row, newest),
        ]
    return [one.clone() for one in found]
