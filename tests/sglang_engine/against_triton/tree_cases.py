"""Kernels that build and verify trees of draft tokens."""

import sgl_kernel
import torch
from sglang.kernels.ops.speculative import eagle, spec_tree

from tests.sglang_engine.against_triton.inputs import Outputs, integer
from tests.sglang_engine.against_triton.trees import QLEN_ONLY, random_tree


def build_tree_kernel_efficient_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    tree = random_tree(rng)
    arguments = (tree.topk, tree.num_steps, tree.num_tokens, QLEN_ONLY)
    ours, theirs = tree.unfilled(), tree.unfilled()
    sgl_kernel.build_tree_kernel_efficient_cpu(
        tree.parent_list, tree.selected_index, tree.seq_lens, *ours, *arguments
    )
    spec_tree.sgl_build_tree_kernel_triton(
        tree.parent_list, tree.selected_index, tree.seq_lens, *theirs, *arguments
    )
    return ours, theirs


def verify_tree_greedy_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    """Three tokens to choose from, so that paths of every length are accepted."""
    tree = random_tree(rng)
    _, _, *links = tree.built()
    shape = (tree.seq_lens.numel(), tree.num_tokens)
    candidates, chosen = torch.randint(0, 3, (2, *shape), generator=rng)
    ours, theirs = (
        (
            torch.zeros(candidates.numel(), dtype=torch.int32),
            torch.full((shape[0], tree.num_steps + 1), -1, dtype=torch.int32),
            torch.zeros(shape[0], dtype=torch.int32),
        )
        for _ in range(2)
    )
    sgl_kernel.verify_tree_greedy_cpu(
        predicts=ours[0],
        accept_index=ours[1],
        accept_token_num=ours[2],
        candidates=candidates,
        retrive_index=links[0],
        retrive_next_token=links[1],
        retrive_next_sibling=links[2],
        target_predict=chosen,
    )
    spec_tree.verify_tree_greedy_triton(*theirs, candidates, *links, chosen)
    return ours, theirs


def fill_bonus_tokens_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    size, width = integer(rng, 1, 6), integer(rng, 1, 7)
    tokens = torch.randint(0, 500, (size * width,), generator=rng)
    lengths = torch.randint(1, width + 1, (size,), generator=rng)
    ours, theirs = torch.empty(2, size, dtype=torch.long)
    sgl_kernel.fill_bonus_tokens_cpu(tokens, lengths, ours, width)
    eagle.fill_bonus_tokens[(size,)](tokens, lengths, theirs, width)
    return (ours,), (theirs,)
