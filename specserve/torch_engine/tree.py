"""Draft trees that adapt to the draft's confidence (EAGLE-2; Li et al., 2024, section 4).

B rows, F frontier nodes that are expanded together, K children of each, P candidates found so
far, N nodes of the finished tree (root included). Scores are log-probabilities of the whole path
from the root, as the draft sees it.
"""

from typing import NamedTuple

import torch
from torch import Tensor

_ROOT = -1


class Candidates(NamedTuple):
    """Every node found so far, [B, P] each, parents before children; parent -1 is the root."""

    tokens: Tensor
    scores: Tensor
    parents: Tensor


class Children(NamedTuple):
    """The likeliest continuations of each frontier node, [B, F, K] each."""

    tokens: Tensor
    scores: Tensor


class Frontier(NamedTuple):
    """The nodes [B, F] to expand next: their places among the candidates, and their parents' in
    the frontier before."""

    tokens: Tensor
    scores: Tensor
    candidates: Tensor
    came_from: Tensor


class Tree(NamedTuple):
    """Node 0 is the root and its own parent; parents come before their children.

    Tokens, parents and depths are [B, N]; `ancestors` [B, N, N] is True where the second node is
    the first or one of its ancestors.
    """

    tokens: Tensor
    parents: Tensor
    depths: Tensor
    ancestors: Tensor


def num_tree_nodes(num_steps: int, topk: int, num_draft_tokens: int) -> int:
    """Nodes that a tree of this depth has, root included: what is asked, or all that it holds."""
    return min(num_draft_tokens, 1 + topk + (num_steps - 1) * topk * topk)


def likeliest_children(logits: Tensor, scores: Tensor, topk: int) -> Children:
    """Logits [B, F, V] behind frontier nodes with scores [B, F]. Tokens are draft ids."""
    # Rounding may lift a logarithm above 0; a child must not overtake its parent.
    log_probabilities = logits.float().log_softmax(dim=-1).clamp_(max=0.0)
    best = log_probabilities.topk(topk, dim=-1)
    return Children(best.indices, best.values + scores[..., None])


def first_candidates(children: Children) -> Candidates:
    """The root's children [B, 1, K] as the first candidates."""
    tokens = children.tokens.flatten(1)
    return Candidates(tokens, children.scores.flatten(1), torch.full_like(tokens, _ROOT))


def first_frontier(candidates: Candidates) -> Frontier:
    """All children of the root."""
    places = torch.arange(candidates.tokens.shape[1], device=candidates.tokens.device)
    here = places.expand_as(candidates.tokens)
    return Frontier(candidates.tokens, candidates.scores, here, torch.zeros_like(here))


def add_candidates(found: Candidates, frontier: Frontier, children: Children) -> Candidates:
    """The candidates with the frontier's children behind them."""
    topk = children.tokens.shape[-1]
    return Candidates(
        torch.cat([found.tokens, children.tokens.flatten(1)], dim=1),
        torch.cat([found.scores, children.scores.flatten(1)], dim=1),
        torch.cat([found.parents, frontier.candidates.repeat_interleave(topk, dim=1)], dim=1),
    )


def next_frontier(found: Candidates, children: Children) -> Frontier:
    """The likeliest of the children that were added last, as many as there are per node."""
    topk = children.tokens.shape[-1]
    scores, places = children.scores.flatten(1).topk(topk, dim=1)
    first_child = found.tokens.shape[1] - children.tokens[0].numel()
    return Frontier(
        children.tokens.flatten(1).gather(1, places),
        scores,
        places + first_child,
        places.div(topk, rounding_mode="floor"),
    )


def select_tree(root_tokens: Tensor, found: Candidates, num_nodes: int) -> Tree:
    """The root [B] and the `num_nodes` - 1 likeliest candidates.

    A path never gains probability, and of equal scores the earlier candidate wins: so with a
    node its ancestors are always chosen.
    """
    order = found.scores.sort(dim=1, descending=True, stable=True).indices
    kept = order[:, : num_nodes - 1].sort(dim=1).values
    node_of = torch.zeros(
        found.tokens.shape[0], found.tokens.shape[1] + 1, dtype=torch.int64, device=kept.device
    )
    # Candidate c lies at c + 1, so that the root (-1) finds node 0.
    nodes = torch.arange(1, kept.shape[1] + 1, device=kept.device).expand_as(kept)
    node_of.scatter_(1, kept + 1, nodes)
    parents = node_of.gather(1, found.parents.gather(1, kept) + 1)
    tokens = torch.cat([root_tokens[:, None], found.tokens.gather(1, kept)], dim=1)
    parents = torch.cat([torch.zeros_like(parents[:, :1]), parents], dim=1)
    ancestors = ancestor_closure(parents)
    return Tree(tokens, parents, ancestors.sum(dim=-1) - 1, ancestors)


def ancestor_closure(parents: Tensor) -> Tensor:
    """Parents [B, N] -> bool [B, N, N]: the second node is the first or one of its ancestors."""
    num_nodes = parents.shape[1]
    reached = torch.eye(num_nodes, dtype=torch.bool, device=parents.device).repeat(
        parents.shape[0], 1, 1
    )
    # After i rounds a node has its nearest 2^i - 1 ancestors.
    for _ in range((num_nodes - 1).bit_length()):
        reached = reached | reached.gather(1, parents[..., None].expand_as(reached))
        parents = parents.gather(1, parents)
    return reached
