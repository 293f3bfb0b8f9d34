"""Random trees of draft tokens, selected as SGLang selects them."""

from dataclasses import dataclass

import sgl_kernel
import torch
from sglang.srt.speculative.eagle_utils import organize_draft_results
from sglang.srt.speculative.spec_utils import select_top_k_tokens
from torch import Tensor

from tests.sglang_engine.against_triton.inputs import integer

QLEN_ONLY = 1


@dataclass(frozen=True)
class Tree:
    """Trees of N tokens for two requests, as drafting leaves them."""

    topk: int
    num_steps: int
    num_tokens: int
    seq_lens: Tensor
    parent_list: Tensor
    selected_index: Tensor

    def unfilled(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """Tree mask, positions and the three tables of links, as SGLang allocates them."""
        shape = (self.seq_lens.numel(), self.num_tokens)
        return (
            torch.ones(shape[0] * shape[1] ** 2, dtype=torch.bool),
            torch.empty(shape[0] * shape[1], dtype=torch.long),
            torch.full(shape, -1),
            torch.full(shape, -1),
            torch.full(shape, -1),
        )

    def built(self) -> tuple[Tensor, Tensor, Tensor, Tensor, Tensor]:
        """The same, filled in by the stand-in, which has a case of its own."""
        outputs = self.unfilled()
        sgl_kernel.build_tree_kernel_efficient_cpu(
            self.parent_list,
            self.selected_index,
            self.seq_lens,
            *outputs,
            self.topk,
            self.num_steps,
            self.num_tokens,
            QLEN_ONLY,
        )
        return outputs


def random_tree(rng: torch.Generator) -> Tree:
    """SGLang's own selection of the most probable tokens, on random probabilities."""
    topk, num_steps, size, vocab_size = integer(rng, 1, 5), integer(rng, 1, 6), 2, 50
    num_candidates = topk + (num_steps - 1) * topk**2
    num_tokens = integer(rng, 2, min(num_candidates + 1, 16) + 1)
    hidden, scores, drafted = torch.zeros(size, 1), None, []
    for step in range(num_steps):
        rows = size if step == 0 else size * topk
        top = torch.rand(rows, vocab_size, generator=rng).softmax(-1).topk(topk)
        _, hidden, scores, info = select_top_k_tokens(
            step, top.values, top.indices, hidden, scores, topk
        )
        drafted.append(info)
    parent_list, selected_index, _ = organize_draft_results(
        *(list(column) for column in zip(*drafted, strict=True)), num_tokens
    )
    seq_lens = torch.randint(1, 41, (size,), generator=rng)
    return Tree(topk, num_steps, num_tokens, seq_lens, parent_list, selected_index)
