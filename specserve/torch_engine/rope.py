"""Rotary position embedding (Su et al., 2021, arXiv:2104.09864), by complex multiplication.

Checkpoints pair element i of a head with element i + D/2. Here the two of a pair lie side by side
(`pair_rows` reorders the weights at load), so that a pair is one complex number and rotating all
query and key heads is one product. Attention is the same: queries and keys are reordered alike.
"""

import math
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class Llama3Scaling:
    """Llama 3.1's stretch of the slow frequencies to a longer context."""

    factor: float
    low_freq_factor: float
    high_freq_factor: float
    original_positions: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rope:
    """The rotary embedding as a config describes it."""

    theta: float
    scaling: Llama3Scaling | None


def frequencies(rope: Rope, head_dim: int, device: torch.device) -> Tensor:
    """Radians per position of each pair, float32 [D/2]."""
    exponents = torch.arange(0, head_dim, 2, dtype=torch.float32, device=device) / head_dim
    plain = 1.0 / rope.theta**exponents
    scaling = rope.scaling
    if scaling is None:
        return plain
    turns = scaling.original_positions * plain / (2 * math.pi)
    span = scaling.high_freq_factor - scaling.low_freq_factor
    kept = ((turns - scaling.low_freq_factor) / span).clamp(0, 1)
    return plain * (kept + (1 - kept) / scaling.factor)


def rotations(positions: Tensor, frequency: Tensor) -> Tensor:
    """Positions [...] -> unit complex numbers [..., 1, D/2], the same for every head."""
    angles = positions[..., None, None] * frequency
    return torch.complex(angles.cos(), angles.sin())


def rotate_(heads: Tensor, rotation: Tensor) -> None:
    """Turn the pairs of heads [..., H, D] in place. Computed in float32."""
    pairs = heads.view(*heads.shape[:-1], -1, 2)
    if heads.dtype is torch.float32:
        torch.view_as_complex(pairs).mul_(rotation)
    else:
        pairs.copy_(torch.view_as_real(torch.view_as_complex(pairs.float()) * rotation))


def pair_rows(rows: Tensor, head_dim: int) -> Tensor:
    """Reorder the leading dimension [H * D, ...] of a stored tensor: halves to pairs."""
    halves = rows.view(-1, 2, head_dim // 2, *rows.shape[1:])
    return halves.transpose(1, 2).reshape(rows.shape)
