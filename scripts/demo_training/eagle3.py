"""The EAGLE-3 draft (arXiv:2503.01840) and its training-time test, under the published names.

Shapes as in llama.py; N base positions, S unrolled steps.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demo_training.llama import Attention, Mlp, Rope, rope
from demo_training.settings import Shape


class StepKV(NamedTuple):
    """Keys and values that one unrolled step wrote, [B, H, N, D] each."""

    keys: Tensor
    values: Tensor


class DraftAttention(Attention):
    """Attention of an unrolled step: the first step's past, and the query's own chain."""

    def unrolled(self, x: Tensor, rope: Rope, past: list[StepKV]) -> Tensor:
        """Query i sees entries 0 … i of the first step and entry i of every later one.

        That is what it sees when it serves: up to its base position i the cache holds entries
        made from the target's features, and beyond it only the chain that started at i.
        """
        query, key, value = self.project(x, rope)
        past.append(StepKV(self.grouped(key), self.grouped(value)))
        first, chain = past[0], past[1:]
        if not chain:
            return self.output(
                F.scaled_dot_product_attention(query, first.keys, first.values, is_causal=True)
            )
        num_positions = x.shape[1]
        later = torch.ones(num_positions, num_positions, dtype=torch.bool, device=x.device).triu(1)
        scores = (query @ first.keys.transpose(-1, -2)).float().masked_fill(later, -torch.inf)
        own = torch.stack([(query * step.keys).float().sum(-1) for step in chain], dim=-1)
        weights = (torch.cat((scores, own), dim=-1) * self.head_dim**-0.5).softmax(-1)
        weights = weights.to(value.dtype)
        attended = weights[..., :num_positions] @ first.values
        for index, step in enumerate(chain):
            attended = attended + weights[..., num_positions + index, None] * step.values
        return self.output(attended)


class MidLayer(nn.Module):
    """The draft's one layer."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.hidden_norm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.self_attn = DraftAttention(shape, 2 * shape.hidden_size)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.mlp = Mlp(shape)

    def forward(self, embedded: Tensor, fused: Tensor, rope: Rope, past: list[StepKV]) -> Tensor:
        normed = torch.cat((self.input_layernorm(embedded), self.hidden_norm(fused)), dim=-1)
        x = fused + self.self_attn.unrolled(normed, rope, past)
        result: Tensor = x + self.mlp(self.post_attention_layernorm(x))
        return result


class Draft(nn.Module):
    """The head. Its token embedding is the target's and is not part of it.

    `draft_ids` [draft vocabulary]: the target ids it can propose, in ascending order.
    """

    def __init__(self, shape: Shape, draft_ids: Tensor) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("draft_ids", draft_ids, persistent=False)
        self.draft_ids: Tensor
        num_features = len(shape.aux_layer_inputs) * shape.hidden_size
        self.fc = nn.Linear(num_features, shape.hidden_size, bias=False)
        self.midlayer = MidLayer(shape)
        self.norm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.lm_head = nn.Linear(shape.hidden_size, len(draft_ids), bias=False)

    def logits(self, hidden: Tensor) -> Tensor:
        """Proposal for each hidden state, over the draft vocabulary."""
        result: Tensor = self.lm_head(self.norm(hidden))
        return result

    def run(self, embedded: Tensor, fused: Tensor) -> Tensor:
        """Hidden states of one pass over [B, N, d] entries that stand at positions 0 … N - 1."""
        positions = torch.arange(embedded.shape[1], device=embedded.device)
        hidden: Tensor = self.midlayer(embedded, fused, rope(self.shape, positions), [])
        return hidden

    def unroll(self, embedded: Tensor, features: Tensor, num_steps: int) -> list[Tensor]:
        """Return the hidden states of each step, [B, N, d] each, with N = tokens - num_steps.

        `embedded` [B, tokens, d] are the target's embeddings of a text and `features`
        [B, tokens, 3d] its aux hidden states. Base i of step s stands at position i + s, takes
        token i + s + 1, and predicts token i + s + 2; after the first step its own hidden state
        of the step before takes the feature's place.
        """
        num_bases = embedded.shape[1] - num_steps
        hidden, past, outputs = self.fc(features[:, :num_bases]), list[StepKV](), list[Tensor]()
        bases = torch.arange(num_bases, device=embedded.device)
        for step in range(num_steps):
            tokens = embedded[:, step + 1 : step + 1 + num_bases]
            hidden = self.midlayer(tokens, hidden, rope(self.shape, bases + step), past)
            outputs.append(hidden)
        return outputs
