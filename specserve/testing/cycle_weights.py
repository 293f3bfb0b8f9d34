"""A cycle of tokens as embeddings and head rows: what a constructed target and draft share.

d hidden size, n frequencies, M tokens on the cycle, V vocabulary. Position i is embedded as
(cos 2πki/M, sin 2πki/M) for n distinct integers k, followed by one constant coordinate √n and
zeros: every embedding has the square 2n, so RMSNorm multiplies each by the same factor.
"""

import math
import random
from dataclasses import dataclass

import torch
from torch import Tensor

from specserve.testing.token_cycle import TokenCycle

NORM_EPS = 1e-5
ROPE_THETA = 10_000.0

# What both q and k hold in each coordinate that is used: their product is then the score at
# distance 0, and every other distance must stay below it by _LEAST_SCORE_GAP (e^-gap leaks).
QUERY_SCALE = 20.0
_LEAST_SCORE_GAP = 20.0
# By how much of the largest logit the next token must win. bfloat16 keeps 1 part in 256.
_LEAST_LOGIT_MARGIN = 0.05
_NUM_DRAWS = 32


@dataclass(frozen=True, slots=True, kw_only=True)
class PairShape:
    """Sizes of both models; the draft's one layer has the target's widths."""

    vocab_size: int
    draft_vocab_size: int
    num_layers: int
    hidden_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    context_length: int

    @property
    def aux_layer_inputs(self) -> tuple[int, int, int]:
        """The usual guess of engines: id i is what layer i takes in."""
        return (2, self.num_layers // 2, self.num_layers - 3)


@dataclass(frozen=True, slots=True, kw_only=True)
class CycleWeights:
    """What target and draft share: positions as embeddings [M, d] and as head rows [M, d].

    The head row of position y is the Fourier part of the embedding of y - 1. `norm_factor` is
    what RMSNorm multiplies an embedding by.
    """

    cycle: TokenCycle
    shape: PairShape
    num_frequencies: int
    embedding_Md: Tensor
    head_Md: Tensor

    @property
    def norm_factor(self) -> float:
        """1 / √(mean square + eps)."""
        return math.sqrt(1 / (2 * self.num_frequencies / self.shape.hidden_size + NORM_EPS))

    @property
    def target_head_Md(self) -> Tensor:
        """Head rows with the jumps: twice the embedding of a jump token, on its successor."""
        head, fourier = self.head_Md.clone(), slice(2 * self.num_frequencies)
        for jump in self.cycle.jumps:
            head[self.cycle.successors[jump], fourier] += 2 * self.embedding_Md[jump, fourier]
        return head


def cycle_weights(cycle: TokenCycle, shape: PairShape, seed: int) -> CycleWeights:
    """Choose the frequencies. Raises ValueError where the next token would not win clearly."""
    num_frequencies = min(
        shape.num_kv_heads * shape.head_dim // 2,
        (shape.hidden_size - 1) // 2,
        (cycle.size - 1) // 2,
    )
    fourier = _fourier_features(cycle.size, num_frequencies, random.Random(seed))
    embedding = torch.zeros(cycle.size, shape.hidden_size, dtype=torch.float64)
    embedding[:, : 2 * num_frequencies] = fourier
    head = embedding.roll(1, dims=0)
    embedding[:, 2 * num_frequencies] = num_frequencies**0.5
    weights = CycleWeights(
        cycle=cycle,
        shape=shape,
        num_frequencies=num_frequencies,
        embedding_Md=embedding,
        head_Md=head,
    )
    _check_margin(weights)
    _check_score_gap(shape)
    return weights


def fast_rope_frequencies(head_dim: int) -> Tensor:
    """The faster half of the rotary frequencies, float64."""
    exponents = torch.arange(0, head_dim // 2, 2, dtype=torch.float64) / head_dim
    return ROPE_THETA**-exponents


def _fourier_features(size: int, num_frequencies: int, chance: random.Random) -> Tensor:
    """cos and sin at the drawn frequencies that tell positions apart best, [M, 2n], float64."""
    positions = torch.arange(size, dtype=torch.float64)
    candidates = range(1, (size + 1) // 2)  # at size / 2 the sine is zero everywhere
    draws = [chance.sample(candidates, num_frequencies) for _ in range(_NUM_DRAWS)]
    angles = [2 * torch.pi * torch.outer(positions, torch.tensor(draw)) / size for draw in draws]
    # The overlap of two embeddings depends on their distance alone: the row sum of cosines.
    best = min(angles, key=lambda draw: float(draw.cos().sum(dim=1)[1:].abs().max()))
    return torch.cat((best.cos(), best.sin()), dim=1)


def _check_margin(weights: CycleWeights) -> None:
    """The target's and the draft's first choice must win for every position."""
    cycle = weights.cycle
    followers = torch.arange(cycle.size).roll(-1)
    for head, expected in (
        (weights.target_head_Md, torch.tensor(cycle.successors)),
        (weights.head_Md, followers),
    ):
        logits = weights.embedding_Md @ head.T
        wanted = logits.gather(1, expected[:, None])
        others = logits.scatter(1, expected[:, None], -torch.inf).amax(dim=1, keepdim=True)
        margin = float(((wanted - others) / wanted.abs()).min())
        if margin < _LEAST_LOGIT_MARGIN:
            raise ValueError(
                f"cycle={cycle.size} with {weights.num_frequencies} frequencies: the next token "
                f"wins by {margin:.0%} of its logit, expected {_LEAST_LOGIT_MARGIN:.0%}; use a "
                "shorter cycle or a wider num_kv_heads * head_dim"
            )


def _check_score_gap(shape: PairShape) -> None:
    """In the draft, the own position must outweigh every other one of the context."""
    distances = torch.arange(1, shape.context_length, dtype=torch.float64)
    waves = torch.outer(distances, fast_rope_frequencies(shape.head_dim)).cos()
    missing = waves.shape[1] - float(waves.sum(dim=1).max())
    gap = QUERY_SCALE**2 * missing / shape.head_dim**0.5
    if gap < _LEAST_SCORE_GAP:
        raise ValueError(
            f"head_dim={shape.head_dim} with context_length={shape.context_length}: the draft's "
            f"attention tells positions apart by {gap:.1f}, expected {_LEAST_SCORE_GAP:.0f}; use "
            "a larger head_dim or a shorter context_length"
        )
