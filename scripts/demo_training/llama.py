"""A compact Llama for training: whole sequences, and a KV cache for the target's own text.

Module names are the published checkpoint's, so a state dict is a checkpoint.
Shapes: B batch, T tokens, H heads, D head size, d hidden size, V vocabulary.
"""

from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from demo_training.settings import Shape


class Rope(NamedTuple):
    """Rotation of each position, [T, D] each."""

    cos: Tensor
    sin: Tensor

    def rotate(self, x: Tensor) -> Tensor:
        """[B, H, T, D] in the half-split convention of the published checkpoints."""
        first, second = x.chunk(2, dim=-1)
        rotated = torch.cat((-second, first), dim=-1)
        return (x * self.cos + rotated * self.sin).to(x.dtype)


class LayerCache(NamedTuple):
    """K and V of one layer, [B, kv heads, capacity, D] each."""

    keys: Tensor
    values: Tensor


def rope(shape: Shape, positions: Tensor) -> Rope:
    """Angles in float32 for [T] positions."""
    exponents = torch.arange(0, shape.head_dim, 2, device=positions.device) / shape.head_dim
    angles = positions[:, None].float() * shape.rope_theta**-exponents
    angles = torch.cat((angles, angles), dim=-1)
    return Rope(angles.cos(), angles.sin())


class Attention(nn.Module):
    """Grouped-query attention; `input_size` is 2d in an EAGLE-3 draft."""

    def __init__(self, shape: Shape, input_size: int) -> None:
        super().__init__()
        self.head_dim = shape.head_dim
        self.num_groups = shape.num_heads // shape.num_kv_heads
        query_size, kv_size = shape.num_heads * shape.head_dim, shape.num_kv_heads * shape.head_dim
        self.q_proj = nn.Linear(input_size, query_size, bias=False)
        self.k_proj = nn.Linear(input_size, kv_size, bias=False)
        self.v_proj = nn.Linear(input_size, kv_size, bias=False)
        self.o_proj = nn.Linear(query_size, shape.hidden_size, bias=False)

    def project(self, x: Tensor, rope: Rope) -> tuple[Tensor, Tensor, Tensor]:
        """[B, T, input] -> queries [B, H, T, D], keys and values [B, kv heads, T, D]."""
        query, key, value = (
            layer(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for layer in (self.q_proj, self.k_proj, self.v_proj)
        )
        return rope.rotate(query), rope.rotate(key), value

    def grouped(self, x: Tensor) -> Tensor:
        """Repeat keys or values for the query heads that share them."""
        return x.repeat_interleave(self.num_groups, dim=1)

    def output(self, attended: Tensor) -> Tensor:
        """[B, H, T, D] -> [B, T, d]."""
        result: Tensor = self.o_proj(attended.transpose(1, 2).flatten(2))
        return result

    def forward(self, x: Tensor, rope: Rope, cache: LayerCache | None, start: int) -> Tensor:
        query, key, value = self.project(x, rope)
        if cache is not None:
            end = start + x.shape[1]
            cache.keys[:, :, start:end] = key
            cache.values[:, :, start:end] = value
            key, value = cache.keys[:, :, :end], cache.values[:, :, :end]
        attended = F.scaled_dot_product_attention(
            query, self.grouped(key), self.grouped(value), is_causal=x.shape[1] > 1
        )
        return self.output(attended)


class Mlp(nn.Module):
    """SwiGLU."""

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.gate_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.up_proj = nn.Linear(shape.hidden_size, shape.intermediate_size, bias=False)
        self.down_proj = nn.Linear(shape.intermediate_size, shape.hidden_size, bias=False)

    def forward(self, x: Tensor) -> Tensor:
        result: Tensor = self.down_proj(F.silu(self.gate_proj(x)) * self.up_proj(x))
        return result


class Layer(nn.Module):
    """Pre-norm block; dropout on what each half adds to the residual stream."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.input_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.self_attn = Attention(shape, shape.hidden_size)
        self.post_attention_layernorm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)
        self.mlp = Mlp(shape)
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, rope: Rope, cache: LayerCache | None, start: int) -> Tensor:
        x = x + self.dropout(self.self_attn(self.input_layernorm(x), rope, cache, start))
        added: Tensor = x + self.dropout(self.mlp(self.post_attention_layernorm(x)))
        return added


class Backbone(nn.Module):
    """Everything but the head, under the prefix that the published names carry."""

    def __init__(self, shape: Shape, dropout: float) -> None:
        super().__init__()
        self.embed_tokens = nn.Embedding(shape.vocab_size, shape.hidden_size)
        self.layers = nn.ModuleList(Layer(shape, dropout) for _ in range(shape.num_layers))
        self.norm = nn.RMSNorm(shape.hidden_size, eps=shape.norm_eps)


class LlamaOutput(NamedTuple):
    """`features`: what entered the asked layers, joined, [B, T, 3d]; empty if none was asked."""

    logits: Tensor
    features: Tensor


class Llama(nn.Module):
    """The target, embeddings tied."""

    def __init__(self, shape: Shape, dropout: float = 0.0) -> None:
        super().__init__()
        self.shape = shape
        self.model = Backbone(shape, dropout)

    def forward(
        self,
        tokens: Tensor,
        *,
        aux_layer_inputs: tuple[int, ...] = (),
        cache: list[LayerCache] | None = None,
        start: int = 0,
    ) -> LlamaOutput:
        """Logits for [B, T] tokens that stand at positions start … start + T - 1."""
        x = self.model.embed_tokens(tokens)
        positions = torch.arange(start, start + tokens.shape[1], device=tokens.device)
        angles = rope(self.shape, positions)
        features = []
        for index, layer in enumerate(self.model.layers):
            if index in aux_layer_inputs:
                features.append(x)
            x = layer(x, angles, None if cache is None else cache[index], start)
        logits = F.linear(self.model.norm(x), self.model.embed_tokens.weight)
        return LlamaOutput(logits, torch.cat(features, dim=-1) if features else x[..., :0])

    def empty_cache(self, batch_size: int, capacity: int) -> list[LayerCache]:
        """Room for `capacity` tokens of each of `batch_size` sequences."""
        weight = self.model.embed_tokens.weight
        size = (batch_size, self.shape.num_kv_heads, capacity, self.shape.head_dim)
        return [
            LayerCache(weight.new_empty(size), weight.new_empty(size)) for _ in self.model.layers
        ]


def initialise(model: nn.Module, num_layers: int) -> None:
    """Normal weights; what writes to the residual stream is scaled down by its depth."""
    for name, parameter in model.named_parameters():
        if parameter.ndim < 2:
            continue
        is_residual = name.endswith(("o_proj.weight", "down_proj.weight"))
        nn.init.normal_(parameter, std=0.04 / (2 * num_layers) ** 0.5 if is_residual else 0.04)
