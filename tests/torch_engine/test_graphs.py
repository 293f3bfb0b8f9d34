"""Graph sizes, and padding to them; the captures themselves need a GPU (scripts/gpu_check.py)."""

from pathlib import Path

import pytest
import torch

from specserve.testing.checkpoints import write_target
from specserve.testing.plans import target_plan
from specserve.torch_engine.attention import Step, chain_step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.graphs import PassSize, StaticPass, fitting_size, pass_sizes, spans
from specserve.torch_engine.target import Target
from specserve.torch_engine.weights import load_target

ROW_TOKENS = 96


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Target:
    folder: Path = tmp_path_factory.mktemp("target")
    write_target(folder, architecture="llama")
    return load_target(target_plan(folder), (2, 4, 5), torch.device("cpu"))


def make_cache(target: Target) -> KVCache:
    block = target.shape.block
    return KVCache(
        num_layers=target.shape.num_layers,
        num_rows=4,
        row_tokens=ROW_TOKENS,
        num_kv_heads=block.num_kv_heads,
        head_dim=block.head_dim,
        dtype=torch.float32,
        device=torch.device("cpu"),
    )


@pytest.mark.parametrize(
    ("row_tokens", "expected"),
    [(40, (40,)), (256, (256,)), (257, (256, 257)), (1040, (256, 512, 1024, 1040))],
)
def test_spans_double_up_to_the_whole_row(row_tokens: int, expected: tuple[int, ...]) -> None:
    assert expected == spans(row_tokens)


def test_every_combination_is_captured_once_and_the_largest_first() -> None:
    sizes = pass_sizes([1, 2, 2], {1, 4}, 512)

    assert sorted(sizes, reverse=True) == list(sizes)
    assert 2 * 2 * 2 == len(set(sizes)) == len(sizes)


def _step(num_rows: int, num_queries: int, kv_tokens: int, first_row: int = 0) -> Step:
    return chain_step(
        torch.full((num_rows,), kv_tokens - num_queries),
        first_row=first_row,
        num_queries=num_queries,
        row_tokens=512,
        kv_tokens=kv_tokens,
    )


def test_the_smallest_size_that_holds_the_step_fits() -> None:
    sizes = sorted(pass_sizes([1, 2, 4], {1, 4}, 512))

    assert PassSize(num_rows=4, num_queries=4, kv_tokens=256) == fitting_size(
        sizes, _step(3, 4, 200)
    )
    assert PassSize(num_rows=1, num_queries=1, kv_tokens=512) == fitting_size(
        sizes, _step(1, 1, 257)
    )


@pytest.mark.parametrize("step", [_step(5, 1, 9), _step(1, 3, 9), _step(1, 1, 9, first_row=1)])
def test_more_rows_other_queries_or_another_first_row_fit_none(step: Step) -> None:
    assert fitting_size(sorted(pass_sizes([1, 2, 4], {1, 4}, 512)), step) is None


@torch.inference_mode()
@pytest.mark.parametrize("num_queries", [1, 4])
def test_a_padded_pass_computes_what_the_pass_itself_does(target: Target, num_queries: int) -> None:
    """Also right after a larger pass: nothing of it is left in the static tensors."""
    direct, padded = make_cache(target), make_cache(target)
    size = PassSize(num_rows=4, num_queries=num_queries, kv_tokens=ROW_TOKENS)
    tokens = torch.randint(100, (1, 1), generator=torch.Generator().manual_seed(0))
    static = StaticPass(size, (tokens,), padded)
    generator = torch.Generator().manual_seed(1)
    length = 0
    for num_rows in (4, 2, 1, 3):
        given = torch.randint(100, (num_rows, num_queries), generator=generator)
        step = chain_step(
            torch.full((num_rows,), length),
            first_row=0,
            num_queries=num_queries,
            row_tokens=ROW_TOKENS,
            kv_tokens=length + num_queries,
        )
        expected = target(given, step, direct)

        static.fill((given,), step)
        found = target(static.inputs[0], static.step, padded)

        assert expected.features is not None
        assert found.features is not None
        torch.testing.assert_close(found.hidden[:num_rows], expected.hidden)
        torch.testing.assert_close(found.features[:num_rows], expected.features)
        length += num_queries


@torch.inference_mode()
def test_padding_rows_write_to_their_scratch_slot_only(target: Target) -> None:
    cache = make_cache(target)
    size = PassSize(num_rows=4, num_queries=1, kv_tokens=ROW_TOKENS)
    static = StaticPass(size, (torch.zeros((1, 1), dtype=torch.int64),), cache)
    step = chain_step(
        torch.tensor([7]), first_row=0, num_queries=1, row_tokens=ROW_TOKENS, kv_tokens=8
    )

    static.fill((torch.tensor([[5]]),), step)
    target(static.inputs[0], static.step, cache)

    keys, _ = cache.read(0, 4, ROW_TOKENS)
    written = {
        (int(row), int(slot))
        for layer in keys
        for row, _, slot in layer.abs().sum(dim=-1).nonzero().tolist()
    }
    assert {(0, 7), (1, ROW_TOKENS - 1), (2, ROW_TOKENS - 1), (3, ROW_TOKENS - 1)} == written
