"""Trees for many rows at once; `test_drafter` compares those of one row with a beam search."""

from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor

from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.loops import Speculation, make_request, open_loop
from specserve.torch_engine.bounds import window_of
from specserve.torch_engine.drafter import Drafter
from specserve.torch_engine.group import Depth, Group, Window, make_group
from specserve.torch_engine.loop import Loop
from specserve.torch_engine.passes import DraftPasses
from specserve.torch_engine.tree import Tree, num_tree_nodes
from specserve.torch_engine.tree_drafter import propose_tree

TOPK = 3


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("random")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


def running(random_pair: tuple[Path, Path]) -> Loop:
    """Three requests of different lengths in mid-flight."""
    target, draft = random_pair
    loop = open_loop(target, Speculation(draft_folder=draft, num_steps=4, topk=TOPK))
    for length in (3, 30, 11):
        request = make_request([40] * length, request_id=str(length), max_tokens=99)
        loop.submit(replace(request, ignore_eos=True))
    for _ in range(4):
        loop.step()
    return loop


@pytest.fixture
def loop(random_pair: tuple[Path, Path]) -> Loop:
    return running(random_pair)


def drafter_of(loop: Loop) -> Drafter:
    drafter = loop._scheduler._drafter
    assert drafter is not None
    return drafter


def grouped(loop: Loop, drafter: Drafter, first: int, last: int) -> tuple[Group, Window]:
    active = loop._scheduler._lineup.requests[first:last]
    group = make_group(first, [one.request for one in active], 320, torch.device("cpu"))
    return group, window_of([one.bounds for one in active], drafter.most_pairs)


def propose(loop: Loop, drafter: Drafter, first: int, last: int, num_steps: int) -> Tree:
    """The whole trees of rows [first, last), whose counts are then as they were before."""
    group, window = grouped(loop, drafter, first, last)
    counts = (drafter.rows.covered, drafter.rows.draft_lengths)
    before = [count.clone() for count in counts]
    tree = propose_tree(drafter, group, whole(num_steps), window)
    for count, old in zip(counts, before, strict=True):
        count.copy_(old)
    return tree


def whole(num_steps: int) -> Depth:
    num_nodes = num_tree_nodes(num_steps, TOPK, 1000)
    return Depth(num_steps=num_steps, topk=TOPK, num_draft_tokens=num_nodes)


def paths(tree: Tree, row: int) -> set[tuple[int, ...]]:
    """Every node as the tokens that lead to it, the root's included."""
    tokens, parents = tree.tokens[row].tolist(), tree.parents[row].tolist()
    found = [(tokens[0],)]
    for node in range(1, len(tokens)):
        found.append((*found[parents[node]], tokens[node]))
    return set(found)


@torch.inference_mode()
def test_rows_do_not_see_each_other(loop: Loop) -> None:
    """The trees of three rows are those of each row alone; each grows from its last token."""
    drafter = drafter_of(loop)
    together = propose(loop, drafter, 0, 3, num_steps=4)
    alone = [propose(loop, drafter, row, row + 1, num_steps=4) for row in range(3)]

    assert [paths(tree, 0) for tree in alone] == [paths(together, row) for row in range(3)]
    rows = drafter.rows
    last = [int(rows.tokens[row, rows.lengths[row]]) for row in range(3)]
    assert last == together.tokens[:, 0].tolist()
    assert 3 == len({frozenset(paths(together, row)) for row in range(3)})


@torch.inference_mode()
def test_a_step_more_adds_to_the_tree_and_takes_nothing_away(loop: Loop) -> None:
    drafter = drafter_of(loop)
    trees = [propose(loop, drafter, 1, 2, num_steps) for num_steps in range(1, 5)]

    assert [3, 12, 21, 30] == [len(paths(tree, 0)) - 1 for tree in trees]
    for smaller, larger in pairwise(trees):
        assert paths(smaller, 0) < paths(larger, 0)


@dataclass(frozen=True)
class CountedDraft:
    """A draft that notes the shape of every pass, [rows, queries]."""

    draft: Any
    shapes: list[tuple[int, ...]] = field(default_factory=list)

    def __call__(self, tokens: Tensor, *rest: Any) -> Tensor:  # noqa: ANN401
        self.shapes.append(tuple(tokens.shape))
        output: Tensor = self.draft(tokens, *rest)
        return output

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return getattr(self.draft, name)


@torch.inference_mode()
def test_each_step_is_one_pass_of_topk_nodes_for_all_rows(loop: Loop) -> None:
    """The first pass makes up for the entries of the last round: here one, nothing accepted."""
    counted = CountedDraft(drafter_of(loop).draft)
    draft: DraftPasses = counted
    propose(loop, replace(drafter_of(loop), draft=draft), 0, 3, num_steps=4)

    assert [(3, 1), (3, TOPK), (3, TOPK), (3, TOPK)] == counted.shapes


@torch.inference_mode()
def test_proposing_leaves_the_entries_of_the_text_alone(random_pair: tuple[Path, Path]) -> None:
    """Expanded nodes are written behind them: what is left is what keeping up would leave."""
    proposed, kept_up = (drafter_of(running(random_pair)) for _ in range(2))
    loop = running(random_pair)
    group, window = grouped(loop, proposed, 0, 3)
    propose_tree(proposed, group, whole(4), window)
    kept_up.keep_up(group, window)
    held = kept_up.rows.draft_lengths[:3]

    assert held.equal(proposed.rows.draft_lengths[:3])
    for row, num_entries in enumerate(held.tolist()):
        entries = kept_up.cache.layers[0][:, row, :, :num_entries]
        assert entries.equal(proposed.cache.layers[0][:, row, :, :num_entries])
