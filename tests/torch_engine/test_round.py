"""What a round leaves behind, against one pass over the whole text."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from specserve.config.policy import AlwaysPolicy, OffPolicy
from specserve.engine import GenerationRequest
from specserve.testing.loops import Speculation, make_request, open_loop
from specserve.torch_engine.active import ActiveRequest
from specserve.torch_engine.attention import chain_step
from specserve.torch_engine.bounds import window_of
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.drafter import captured
from specserve.torch_engine.group import make_group
from specserve.torch_engine.loop import Loop
from specserve.torch_engine.round import Decoder, Emitted, Span
from specserve.torch_engine.rows import Rows
from tests.torch_engine.greedy_scenes import write_pair

PROMPT_LENGTHS = (20, 1, 7)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A draft that is often right, and a target that reads its context."""
    return write_pair(tmp_path_factory.mktemp("pair"), "good")


def requests() -> list[GenerationRequest]:
    return [
        make_request(range(260, 260 + length), request_id=str(length), max_tokens=200)
        for length in PROMPT_LENGTHS
    ]


def running(pair: tuple[Path, Path], num_steps: int, topk: int, num_rounds: int) -> Loop:
    """Requests that decode in rows 0 to 2, plainly for `num_steps` 0, with features kept."""
    target, draft = pair
    loop = open_loop(
        target,
        Speculation(draft_folder=draft, num_steps=num_steps or 1, topk=topk),
        policy=AlwaysPolicy(kind="always") if num_steps else OffPolicy(kind="off"),
    )
    for request in requests():
        loop.submit(request)
    for _ in range(num_rounds):
        loop.step()
    return loop


def decoder_of(loop: Loop) -> Decoder:
    return loop._scheduler._decoder


def active(loop: Loop) -> tuple[ActiveRequest, ...]:
    return loop._scheduler._lineup.requests


def passed_once(decoder: Decoder, tokens: Tensor) -> tuple[KVCache, Tensor]:
    """A cache that holds these tokens in row 0, and their features [Q, F]."""
    like = decoder.rows.target_cache
    cache = KVCache(
        num_layers=len(like.layers),
        num_rows=1,
        row_tokens=like.row_tokens,
        num_kv_heads=like.num_kv_heads,
        head_dim=like.head_dim,
        dtype=like.layers[0].dtype,
        device=like.layers[0].device,
    )
    step = chain_step(
        torch.tensor([0]),
        first_row=0,
        num_queries=len(tokens),
        row_tokens=like.row_tokens,
        kv_tokens=len(tokens),
    )
    return cache, captured(decoder.target(tokens[None], step, cache))[0]


@pytest.mark.parametrize(("num_steps", "topk"), [(0, 1), (1, 1), (4, 1), (1, 3), (4, 3)])
@torch.inference_mode()
def test_what_a_row_holds_is_that_of_its_text(
    pair: tuple[Path, Path], num_steps: int, topk: int
) -> None:
    """Keys and values, and the features that the draft has not consumed, after many rounds.

    Of a tree the accepted path has then been moved to where a chain would have left it.
    """
    loop = running(pair, num_steps, topk, num_rounds=9)
    decoder, drafter = decoder_of(loop), loop._scheduler._drafter
    rows, stats = decoder.rows, loop.stats()

    assert drafter is not None
    assert (0 < stats.accepted < num_steps * stats.verify_rounds) == (num_steps > 0)
    for row in range(len(PROMPT_LENGTHS)):
        length = int(rows.lengths[row])
        cache, features = passed_once(decoder, rows.tokens[row, :length])
        fresh = torch.arange(length - 1 if num_steps == 0 else int(rows.covered[row]), length)
        for held, expected in zip(rows.target_cache.layers, cache.layers, strict=True):
            close(held[:, row, :, :length], expected[:, 0, :, :length])
        close(drafter.features.read(row, fresh[None])[0], features[fresh])


def close(actual: Tensor, expected: Tensor) -> None:
    torch.testing.assert_close(actual, expected, rtol=1e-3, atol=1e-4)


@torch.inference_mode()
def test_a_round_touches_no_row_outside_its_group(pair: tuple[Path, Path]) -> None:
    loop = running(pair, num_steps=0, topk=1, num_rounds=2)
    decoder = decoder_of(loop)
    before = [values.clone() for values in contents(decoder.rows)]
    middle = active(loop)[1]
    group = make_group(1, [middle.request], 512, torch.device("cpu"))
    (run,) = decoder.plain(group, window_of([middle.bounds], 1), None).runs()

    length = int(decoder.rows.lengths[1])
    assert [int(decoder.rows.tokens[1, length])] == run
    for values, old in zip(contents(decoder.rows), before, strict=True):
        assert values[0].equal(old[0])
        assert values[2].equal(old[2])
        assert not values[1].equal(old[1])


def contents(rows: Rows) -> Sequence[Tensor]:
    """By row: tokens, counts, keys and values of each layer."""
    return [
        rows.tokens,
        rows.lengths,
        *(layer.transpose(0, 1) for layer in rows.target_cache.layers),
    ]


@torch.inference_mode()
def test_spans_of_prompts_in_one_pass_are_what_each_is_alone(pair: tuple[Path, Path]) -> None:
    """The second span of row 0 sees the first, which an earlier pass has left in the cache."""
    decoder = decoder_of(open_loop(pair[0]))
    prompts = [torch.arange(260, 290), torch.arange(300, 311)]
    for row, prompt in enumerate(prompts):
        decoder.rows.start(row, prompt)
    decoder.prefill([Span(0, 0, 12)])
    hidden = decoder.prefill([Span(0, 12, 18), Span(1, 0, 11)]).hidden[0]

    decoder.rows.start(2, prompts[0])
    decoder.rows.start(3, prompts[1])
    close(hidden[:18], decoder.prefill([Span(2, 0, 30)]).hidden[0, 12:])
    close(hidden[18:], decoder.prefill([Span(3, 0, 11)]).hidden[0])


def test_a_run_ends_with_the_token_behind_what_was_accepted() -> None:
    emitted = Emitted(torch.tensor([[5, 6, 7], [8, 9, 1]]), torch.tensor([0, 2]), None)

    assert [[5], [8, 9, 1]] == emitted.runs()
