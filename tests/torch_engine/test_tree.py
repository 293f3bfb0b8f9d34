import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import Tensor

from specserve.torch_engine.tree import (
    Candidates,
    Tree,
    add_candidates,
    ancestor_closure,
    first_candidates,
    first_frontier,
    likeliest_children,
    next_frontier,
    num_tree_nodes,
    select_tree,
)


def grow(logits: list[Tensor], topk: int, num_nodes: int) -> tuple[Candidates, Tree]:
    """Draft with given logits per level: [B, 1, V], then [B, topk, V] each."""
    children = likeliest_children(logits[0], torch.zeros(logits[0].shape[0], 1), topk)
    found = first_candidates(children)
    frontier = first_frontier(found)
    for level in logits[1:]:
        children = likeliest_children(level, frontier.scores, topk)
        found = add_candidates(found, frontier, children)
        frontier = next_frontier(found, children)
    roots = torch.full((logits[0].shape[0],), 77)
    return found, select_tree(roots, found, num_nodes)


@pytest.mark.parametrize(
    ("num_steps", "topk", "asked", "expected"),
    [(3, 1, 4, 4), (1, 4, 50, 5), (2, 4, 50, 21), (2, 4, 8, 8), (1, 1, 2, 2)],
)
def test_a_tree_has_what_is_asked_or_all_that_it_holds(
    num_steps: int, topk: int, asked: int, expected: int
) -> None:
    assert expected == num_tree_nodes(num_steps, topk, asked)


def test_the_likeliest_paths_are_kept() -> None:
    """Worked by hand: level 1 has 0.6 and 0.4; under 0.6: 0.5 and 0.5; under 0.4: 0.9 and 0.1."""
    first = torch.tensor([[[0.6, 0.4, 1e-9]]]).log()
    second = torch.tensor([[[0.5, 0.5 - 1e-4, 1e-9], [0.9, 0.1, 1e-9]]]).log()

    _, tree = grow([first, second], topk=2, num_nodes=4)

    # 0.6, 0.4 and 0.4 * 0.9 = 0.36 beat 0.6 * 0.5 = 0.30.
    assert [[77, 0, 1, 0]] == tree.tokens.tolist()
    assert [[0, 0, 0, 2]] == tree.parents.tolist()
    assert [[0, 1, 1, 2]] == tree.depths.tolist()


def test_of_equal_scores_the_ancestor_wins() -> None:
    """A child with probability 1 has its parent's score exactly, and must not go in without it."""
    certain = torch.tensor([0.0, -math.inf, -math.inf])
    levels = [certain.expand(1, 1, 3), *(certain.expand(1, 1, 3) for _ in range(3))]

    _, tree = grow(levels, topk=1, num_nodes=3)

    assert [[0, 0, 1]] == tree.parents.tolist()


@given(
    seed=st.integers(0, 10_000),
    topk=st.integers(1, 4),
    num_steps=st.integers(1, 5),
    share=st.floats(0, 1),
)
def test_every_tree_is_closed_under_parents_and_has_distinct_children(
    seed: int, topk: int, num_steps: int, share: float
) -> None:
    generator = torch.Generator().manual_seed(seed)
    logits = [torch.randn(3, 1, 9, generator=generator).mul(4).round()]
    logits += [
        torch.randn(3, topk, 9, generator=generator).mul(4).round() for _ in range(num_steps - 1)
    ]
    most = num_tree_nodes(num_steps, topk, 1000)
    num_nodes = 2 + round(share * (most - 2))

    found, tree = grow(logits, topk, num_nodes)

    assert (3, num_nodes) == tuple(tree.tokens.shape)
    for row in range(3):
        parents = tree.parents[row].tolist()
        assert all(parent < node for node, parent in enumerate(parents) if node)
        depths = [0]
        for parent in parents[1:]:
            depths.append(depths[parent] + 1)
        assert depths == tree.depths[row].tolist()
        assert num_steps >= max(depths)
        branches = list(zip(parents[1:], tree.tokens[row, 1:].tolist(), strict=True))
        assert len(branches) == len(set(branches))
    # The kept scores are the best there are.
    best = found.scores.sort(dim=1, descending=True).values[:, : num_nodes - 1]
    assert (best[:, -1:] <= best).all()


def test_ancestors_are_found_at_any_depth() -> None:
    chain = ancestor_closure(torch.tensor([[0, 0, 1, 2, 3, 4, 5]]))

    assert torch.ones(7, 7).tril().bool().equal(chain[0])
