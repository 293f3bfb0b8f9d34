"""How much of a draft the target keeps.

B rows, K drafted tokens in a chain, N nodes in a tree (the root, which is the last token of the
text, included), D the greatest depth.

The draft proposes tokens, not distributions: its q is one-hot. Speculative sampling (Leviathan et
al., 2023) then comes down to this: draw the target's token at a node; if it is one of the node's
children, go there, else emit it and stop. Greedy decoding is the same with argmax for the draw,
and what is emitted is in both cases what plain decoding would have emitted.
"""

from typing import NamedTuple

import torch
from torch import Tensor


class Verdict(NamedTuple):
    """The first `num_accepted[b] + 1` of `tokens[b]` are emitted; what follows means nothing."""

    tokens: Tensor
    num_accepted: Tensor


class TreeVerdict(NamedTuple):
    """A verdict, and the accepted `path` [B, D + 1] of nodes from the root on."""

    tokens: Tensor
    num_accepted: Tensor
    path: Tensor


def verify_chain(drafted: Tensor, chosen: Tensor) -> Verdict:
    """Drafted [B, K], and the target's choice [B, K + 1] after the last token and each drafted."""
    accepted = (drafted == chosen[:, :-1]).cumprod(dim=1)
    return Verdict(chosen, accepted.sum(dim=1))


def verify_tree(
    tokens: Tensor, parents: Tensor, ancestors: Tensor, chosen: Tensor, max_depth: int
) -> TreeVerdict:
    """Nodes [B, N] with parents before children; `chosen` is the target's choice after each node.

    `ancestors[b, i, j]`: node j is node i or one of its ancestors. The children of a node differ,
    so the accepted nodes lie on one path, and their order is the path's.
    """
    matches = tokens == chosen.gather(1, parents)
    matches[:, 0] = True
    accepted = (matches[:, None, :] | ~ancestors).all(dim=-1)
    path = torch.argsort(~accepted, dim=1, stable=True)[:, : max_depth + 1]
    return TreeVerdict(chosen.gather(1, path), accepted.sum(dim=1) - 1, path)
