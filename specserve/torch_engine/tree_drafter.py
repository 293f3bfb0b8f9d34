"""Drafting a tree: each pass expands the likeliest nodes that the one before has found.

B rows, K = topk nodes expanded together, T places in the draft's cache for all expanded nodes.
"""

import torch
from torch import Tensor

from specserve.torch_engine.drafter import Drafter
from specserve.torch_engine.group import Depth, Group, Window
from specserve.torch_engine.masks import tree_mask
from specserve.torch_engine.tree import (
    Frontier,
    Tree,
    add_candidates,
    first_candidates,
    first_frontier,
    likeliest_children,
    next_frontier,
    select_tree,
)


def propose_tree(drafter: Drafter, group: Group, depth: Depth, window: Window) -> Tree:
    """The likeliest nodes of a tree, in target ids; one draft pass for each of its steps."""
    rows, draft = drafter.rows, drafter.draft
    num_steps, topk = depth.num_steps, depth.topk
    hidden = drafter.extend(group, window)[:, None]
    no_score = torch.zeros((group.num_rows, 1), device=hidden.device)
    children = likeliest_children(draft.logits(hidden), no_score, topk)
    found = first_candidates(children)
    frontier = first_frontier(found)
    visible = torch.zeros(
        (group.num_rows, 1, (num_steps - 1) * topk), dtype=torch.bool, device=hidden.device
    )
    for level in range(1, num_steps):
        visible = _descend(visible, frontier, level)
        hidden = _expand(drafter, group, frontier, hidden, visible, level, window.kv_tokens)
        children = likeliest_children(draft.logits(hidden), frontier.scores, topk)
        found = add_candidates(found, frontier, children)
        frontier = next_frontier(found, children)
    found = found._replace(tokens=draft.target_ids(found.tokens))
    root_tokens = rows.tokens[group.rows].gather(1, rows.lengths[group.rows, None])[:, 0]
    return select_tree(root_tokens, found, depth.num_draft_tokens)


def _descend(visible: Tensor, frontier: Frontier, level: int) -> Tensor:
    """What the frontier's parents saw, and each node itself: bool [B, K, T]."""
    seen = visible.gather(1, frontier.came_from[..., None].expand(-1, -1, visible.shape[-1]))
    topk = frontier.tokens.shape[1]
    own = seen[..., (level - 1) * topk : level * topk]
    own.diagonal(dim1=1, dim2=2).fill_(True)
    return seen


def _expand(
    drafter: Drafter,
    group: Group,
    frontier: Frontier,
    hidden: Tensor,
    visible: Tensor,
    level: int,
    kv_tokens: int,
) -> Tensor:
    """Pass the frontier's nodes, all `level` tokens behind the root: hidden states [B, K, d]."""
    rows = drafter.rows
    topk = frontier.tokens.shape[1]
    bases = rows.draft_lengths[group.rows]
    parents = frontier.came_from[..., None].expand(-1, -1, hidden.shape[-1])
    places = bases[:, None] + rows.counting[(level - 1) * topk : level * topk]
    kv_tokens += visible.shape[-1]
    return drafter.forward(
        group.first_row,
        drafter.draft.target_ids(frontier.tokens),
        hidden.gather(1, parents),
        positions=(rows.lengths[group.rows, None] + level - 1).expand(-1, topk),
        places=places,
        kv_tokens=kv_tokens,
        mask=tree_mask(visible, bases, rows.counting, kv_tokens),
    )
