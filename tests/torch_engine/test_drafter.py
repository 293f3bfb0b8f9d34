"""Draft entries and proposals, against passes over the whole text at once.

A wrong entry never shows in the output, only in the acceptance: so it is looked for here. The
references know nothing of rows, rings, gaps and trees in a cache: they pass a chain from the
start, each time, with the cache that nobody else has written to.
"""

from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from torch import Tensor

from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.constructed import ConstructedPair, construct_pair
from specserve.testing.loops import Speculation, make_request, open_loop
from specserve.torch_engine.attention import Step, chain_step
from specserve.torch_engine.bounds import window_of
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.drafter import Drafter, captured
from specserve.torch_engine.group import Depth
from specserve.torch_engine.loop import Loop
from specserve.torch_engine.tree_drafter import propose_tree

PROMPT = tuple(range(40, 60))


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("random")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


@pytest.fixture(scope="module")
def good_pair(tmp_path_factory: pytest.TempPathFactory) -> ConstructedPair:
    return construct_pair(tmp_path_factory.mktemp("good"), p=0.7)


def drafter_of(loop: Loop) -> Drafter:
    drafter = loop._scheduler._drafter
    assert drafter is not None
    return drafter


def fresh(like: KVCache) -> KVCache:
    layer = like.layers[0]
    return KVCache(
        num_layers=len(like.layers),
        num_rows=1,
        row_tokens=like.row_tokens,
        num_kv_heads=like.num_kv_heads,
        head_dim=like.head_dim,
        dtype=layer.dtype,
        device=layer.device,
    )


@dataclass(frozen=True)
class Text:
    """Row 0 as it stands, passed once from its start."""

    drafter: Drafter
    tokens: Tensor
    fused: Tensor

    def hidden(self, proposed: list[int], outputs: list[Tensor]) -> Tensor:
        """The draft's output [d] behind tokens proposed so far, each with its parent's output."""
        return self._pass(proposed, outputs)[0][-1]

    def entries(self) -> Tensor:
        """Keys and values [2, Hkv, length, D] of all entries."""
        return self._pass([], [])[1].layers[0][:, 0, :, : len(self.tokens) - 1]

    def _pass(self, proposed: list[int], outputs: list[Tensor]) -> tuple[Tensor, KVCache]:
        tokens = torch.cat([self.tokens[1:], torch.tensor(proposed, dtype=torch.int64)])
        fused = torch.cat([self.fused, *(output[None] for output in outputs)])
        cache = fresh(self.drafter.cache)
        step = whole(len(tokens), cache)
        return self.drafter.draft(tokens[None], fused[None], step, cache)[0], cache


def whole(num_tokens: int, cache: KVCache) -> Step:
    return chain_step(
        torch.tensor([0]),
        first_row=0,
        num_queries=num_tokens,
        row_tokens=cache.row_tokens,
        kv_tokens=num_tokens,
    )


def text_of(loop: Loop) -> Text:
    rows, target = drafter_of(loop).rows, loop._scheduler._decoder.target
    tokens = rows.tokens[0, : int(rows.lengths[0]) + 1].clone()
    cache = fresh(loop._scheduler._decoder.rows.target_cache)
    features = captured(target(tokens[None, :-1], whole(len(tokens) - 1, cache), cache))
    return Text(drafter_of(loop), tokens, drafter_of(loop).draft.fuse(features)[0])


def running(target: Path, draft: Path, *, num_steps: int, topk: int, num_rounds: int) -> Loop:
    loop = open_loop(target, Speculation(draft_folder=draft, num_steps=num_steps, topk=topk))
    loop.submit(make_request(PROMPT, max_tokens=200, ignore_eos=True))
    for _ in range(num_rounds):
        loop.step()
    return loop


@pytest.mark.parametrize(("num_steps", "topk"), [(3, 1), (3, 3), (1, 2)])
@torch.inference_mode()
def test_entries_are_those_of_the_whole_text(
    good_pair: ConstructedPair, num_steps: int, topk: int
) -> None:
    """After rounds that accepted some, all or none, along paths that lay scattered in the tree."""
    loop = running(
        good_pair.target_folder,
        good_pair.draft_folder,
        num_steps=num_steps,
        topk=topk,
        num_rounds=12,
    )
    held = int(drafter_of(loop).rows.draft_lengths[0])
    state = drafter_of(loop).cache.layers[0][:, 0, :, :held]

    assert 12 < loop.stats().emitted
    torch.testing.assert_close(state, text_of(loop).entries()[:, :, :held], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("num_steps", [1, 2, 5])
@torch.inference_mode()
def test_a_chain_takes_the_likeliest_each_time(
    random_pair: tuple[Path, Path], num_steps: int
) -> None:
    loop = running(*random_pair, num_steps=num_steps, topk=1, num_rounds=4)
    drafter, text = drafter_of(loop), text_of(loop)
    proposed: list[int] = []
    outputs: list[Tensor] = []
    for _ in range(num_steps):
        outputs.append(text.hidden(proposed, outputs))
        best = drafter.draft.logits(outputs[-1]).argmax()
        proposed.append(int(drafter.draft.target_ids(best)))

    (request,) = loop._scheduler._lineup.requests
    window = window_of([request.bounds], drafter.most_pairs)
    drafted = drafter.propose_chain(loop._scheduler._group(0, 1), num_steps, window)

    assert [proposed] == drafted.tolist()


@pytest.mark.parametrize(
    ("num_steps", "topk", "num_draft_tokens"), [(1, 3, 4), (3, 2, 8), (4, 3, 12), (3, 3, 22)]
)
@torch.inference_mode()
def test_a_tree_has_the_likeliest_paths(
    random_pair: tuple[Path, Path], num_steps: int, topk: int, num_draft_tokens: int
) -> None:
    """Against a beam search that passes every path from the start."""
    loop = running(*random_pair, num_steps=num_steps, topk=topk, num_rounds=4)
    drafter, text = drafter_of(loop), text_of(loop)
    expected = best_paths(text, num_steps, topk)[: num_draft_tokens - 1]

    (request,) = loop._scheduler._lineup.requests
    depth = Depth(num_steps=num_steps, topk=topk, num_draft_tokens=num_draft_tokens)
    window = window_of([request.bounds], drafter.most_pairs)
    tree = propose_tree(drafter, loop._scheduler._group(0, 1), depth, window)

    paths = [()]
    parents, tokens = tree.parents[0].tolist(), tree.tokens[0].tolist()
    for node in range(1, num_draft_tokens):
        paths.append((*paths[parents[node]], tokens[node]))
    assert {path for _, path in expected} == set(paths[1:])
    assert int(text.tokens[-1]) == tokens[0]


def best_paths(text: Text, num_steps: int, topk: int) -> list[tuple[float, tuple[int, ...]]]:
    """All paths that are ever proposed, likeliest first."""
    draft = text.drafter.draft
    found: list[tuple[float, tuple[int, ...]]] = []
    frontier: list[tuple[float, tuple[int, ...], list[Tensor]]] = [(0.0, (), [])]
    for _ in range(num_steps):
        children = []
        for score, path, outputs in frontier:
            output = text.hidden(list(path), outputs)
            best = draft.logits(output).log_softmax(-1).topk(topk)
            for value, token in zip(best.values, draft.target_ids(best.indices), strict=True):
                children.append((score + float(value), (*path, int(token)), [*outputs, output]))
        found += [(score, path) for score, path, _ in children]
        frontier = sorted(children, key=lambda child: -child[0])[:topk]
    return sorted(found, key=lambda one: -one[0])
