"""The EAGLE-3 head (Li et al., 2025, arXiv:2503.01840): one block on fused target features."""

import torch
from torch import Tensor, nn

from specserve.torch_engine.attention import PackedStep, Step, make_attention
from specserve.torch_engine.block import Block
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.linear import Linear
from specserve.torch_engine.norm import RmsNorm
from specserve.torch_engine.rope import frequencies
from specserve.torch_engine.shape import DraftShape


class Draft(nn.Module):
    """Proposes the token after next from a token and the target's features before it.

    The entry at position i joins the feature of position i with the token at i + 1, has rotary
    position i, and proposes the token at i + 2. Deeper in a round the head's own output takes the
    feature's place and its proposal the token's.
    """

    def __init__(self, shape: DraftShape, device: torch.device) -> None:
        super().__init__()
        hidden, eps = shape.block.hidden_size, shape.block.norm_eps
        self.shape = shape
        self.embed_tokens = nn.Embedding(shape.vocab_size, hidden)
        self.fc = Linear(shape.num_aux * shape.target_hidden_size, hidden, bias=False)
        self.hidden_norm = RmsNorm((hidden,), eps)
        self.midlayer = Block(shape.block)
        self.norm = RmsNorm((hidden,), eps)
        self.lm_head = Linear(hidden, shape.draft_vocab_size, bias=False)
        self.d2t: Tensor | None
        self.register_buffer("d2t", None)
        self._frequency = frequencies(shape.rope, shape.block.head_dim, device)

    def fuse(self, features: Tensor) -> Tensor:
        """Captured features [..., n_aux * d_target] -> [..., d]."""
        fused: Tensor = self.fc(features)
        return fused

    def forward(
        self, tokens: Tensor, fused: Tensor, step: Step | PackedStep, cache: KVCache
    ) -> Tensor:
        """Pass tokens [B, Q] and what stands for their features, [B, Q, d].

        Returns the residual stream before the last norm, [B, Q, d]: the next step's `fused`.
        """
        attend = make_attention(step, cache, self._frequency, self.shape.block.num_heads)
        token = self.midlayer.input_layernorm(self.embed_tokens(tokens))
        joined = torch.cat((token, self.hidden_norm(fused)), dim=-1)
        return self.midlayer.attend_from(joined, fused, attend, 0)

    def logits(self, hidden: Tensor) -> Tensor:
        """Outputs of `forward` [..., d] -> logits [..., draft vocabulary]."""
        logits: Tensor = self.lm_head(self.norm(hidden))
        return logits

    def target_ids(self, draft_ids: Tensor) -> Tensor:
        """Ids of the draft vocabulary -> the target's ids of the same tokens."""
        return draft_ids if self.d2t is None else draft_ids + self.d2t[draft_ids]
