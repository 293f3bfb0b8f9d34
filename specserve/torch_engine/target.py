"""The served model: a Llama-family decoder that also hands out what its layers take in."""

from typing import NamedTuple

import torch
from torch import Tensor, nn

from specserve.torch_engine.attention import PackedStep, Step, make_attention
from specserve.torch_engine.block import Block
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.linear import Linear
from specserve.torch_engine.norm import RmsNorm
from specserve.torch_engine.rope import frequencies
from specserve.torch_engine.shape import TargetShape


class TargetOutput(NamedTuple):
    """`hidden` [B, Q, d] after the final norm; `features` [B, Q, n_aux * d] if any are asked for.

    The features are the residual stream as it enters the layers in `aux_layer_inputs`, in the
    order of the ids; the id num_layers stands for what leaves the last layer.
    """

    hidden: Tensor
    features: Tensor | None


class Target(nn.Module):
    """Weights and forward pass; the KV memory belongs to the caller.

    Nothing here waits for the device, so a pass with fixed sizes can be captured in a CUDA graph.
    """

    def __init__(
        self, shape: TargetShape, aux_layer_inputs: tuple[int, ...], device: torch.device
    ) -> None:
        super().__init__()
        hidden = shape.block.hidden_size
        self.shape = shape
        self.aux_layer_inputs = aux_layer_inputs
        self.embed_tokens = nn.Embedding(shape.vocab_size, hidden)
        self._blocks = tuple(Block(shape.block) for _ in range(shape.num_layers))
        self.layers = nn.ModuleList(self._blocks)
        self.norm = RmsNorm((hidden,), shape.block.norm_eps)
        self.lm_head = Linear(hidden, shape.vocab_size, bias=False)
        if shape.tie_embeddings:
            self.lm_head.weight = self.embed_tokens.weight
        # No buffer: it is computed, neither stored in a checkpoint nor counted as a weight.
        self._frequency = frequencies(shape.rope, shape.block.head_dim, device)

    def forward(self, tokens: Tensor, step: Step | PackedStep, cache: KVCache) -> TargetOutput:
        """Pass tokens [B, Q] int64, whose keys and values are written to `cache`."""
        attend = make_attention(step, cache, self._frequency, self.shape.block.num_heads)
        hidden: Tensor = self.embed_tokens(tokens)
        captured = []
        for index, block in enumerate(self._blocks):
            if index in self.aux_layer_inputs:
                captured.append(hidden)
            hidden = block.forward(hidden, attend, index)
        if self.shape.num_layers in self.aux_layer_inputs:
            captured.append(hidden)
        features = torch.cat(captured, dim=-1) if captured else None
        return TargetOutput(self.norm(hidden), features)

    def logits(self, hidden: Tensor) -> Tensor:
        """Normed hidden states [..., d] -> logits [..., V]."""
        logits: Tensor = self.lm_head(hidden)
        return logits
