"""Choosing the target's token at each position: greedy, or one reproducible sample.

B rows, Q positions each, V tokens in the vocabulary, S sampled rows among the B.

A sampled token depends on the logits, the request's settings, its seed and the token's index in
the sequence, and on nothing else. So a seed gives the same tokens with and without speculation,
and in any batch.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specserve.engine import Sampling

_GOLDEN = 0x9E3779B97F4A7C15
_MIX_1 = 0xBF58476D1CE4E5B9
_MIX_2 = 0x94D049BB133111EB


@dataclass(frozen=True, slots=True, kw_only=True)
class LogitBias:
    """What one request adds to its raw logits."""

    row: int
    token_ids: Tensor
    values: Tensor


@dataclass(frozen=True, slots=True, kw_only=True)
class SampledRows:
    """Settings of the rows with a temperature, one entry each: all tensors are [S]."""

    rows: Tensor
    seeds: Tensor
    temperature: Tensor
    top_k: Tensor
    top_p: Tensor
    min_p: Tensor
    truncates: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class SamplingBatch:
    """How the rows of one batch choose; rows that are not in `sampled` are greedy."""

    sampled: SampledRows | None
    biases: tuple[LogitBias, ...]


def make_sampling_batch(
    settings: Sequence[Sampling], vocab_size: int, device: torch.device
) -> SamplingBatch:
    """The settings of a batch's requests, in row order, as tensors."""
    rows = [row for row, one in enumerate(settings) if one.temperature > 0]
    biases = tuple(
        LogitBias(
            row=row,
            token_ids=torch.tensor(list(one.logit_bias), device=device),
            values=torch.tensor(list(one.logit_bias.values()), device=device),
        )
        for row, one in enumerate(settings)
        if one.logit_bias
    )
    if not rows:
        return SamplingBatch(sampled=None, biases=biases)
    chosen = [settings[row] for row in rows]
    return SamplingBatch(
        sampled=SampledRows(
            rows=torch.tensor(rows, device=device),
            seeds=torch.tensor([_signed(one.seed) for one in chosen], device=device),
            temperature=torch.tensor([one.temperature for one in chosen], device=device),
            top_k=torch.tensor([one.top_k or vocab_size for one in chosen], device=device),
            top_p=torch.tensor([one.top_p for one in chosen], device=device),
            min_p=torch.tensor([one.min_p for one in chosen], device=device),
            truncates=any(one.top_k is not None or one.top_p < 1 for one in chosen),
        ),
        biases=biases,
    )


def choose_tokens(logits: Tensor, positions: Tensor, batch: SamplingBatch) -> Tensor:
    """The target's token behind each of the positions [B, Q]: logits [B, Q, V] -> ids [B, Q]."""
    if batch.biases:
        logits = logits.clone()
        for bias in batch.biases:
            logits[bias.row, :, bias.token_ids] += bias.values.to(logits.dtype)
    tokens = logits.argmax(dim=-1)
    if batch.sampled is not None:
        rows = batch.sampled.rows
        tokens[rows] = sample_tokens(logits[rows], positions[rows] + 1, batch.sampled)
    return tokens


def sample_tokens(logits: Tensor, indices: Tensor, settings: SampledRows) -> Tensor:
    """One sample per logits [S, Q, V] by the inverse of the distribution function: ids [S, Q].

    `indices` [S, Q] is the index in its sequence that each token would have.

    Tokens are taken in vocabulary order, whatever was truncated: the order is then the same for
    every batch.
    """
    mass = token_probabilities(logits, settings).double().cumsum(dim=-1)
    share = uniform(settings.seeds[:, None], indices)
    return torch.searchsorted(mass, (share * mass[..., -1])[..., None], right=True)[..., 0]


def token_probabilities(logits: Tensor, settings: SampledRows) -> Tensor:
    """The distribution that a row samples from, up to its total: [S, Q, V] -> [S, Q, V].

    Temperature, then top_k, top_p (of what top_k left) and min_p (against the most likely token).
    """
    scaled = logits.float()
    scaled = scaled - scaled.amax(dim=-1, keepdim=True)
    probabilities = (scaled / settings.temperature[:, None, None]).softmax(dim=-1)
    kept = probabilities >= settings.min_p[:, None, None] * probabilities.amax(-1, keepdim=True)
    if settings.truncates:
        kept &= _most_likely(probabilities, settings.top_k, settings.top_p)
    return probabilities * kept


def _most_likely(probabilities: Tensor, top_k: Tensor, top_p: Tensor) -> Tensor:
    """The top_k most likely tokens, and of those the fewest that reach the share top_p: bool.

    Of equally likely tokens the lower id goes first.
    """
    ordered, order = probabilities.sort(dim=-1, descending=True, stable=True)
    rank = torch.arange(ordered.shape[-1], device=ordered.device)
    ordered = (ordered * (rank < top_k[:, None, None])).double()
    before = ordered.cumsum(dim=-1) - ordered
    share = top_p[:, None, None].double()
    kept = (ordered > 0) & ((before < share * ordered.sum(-1, keepdim=True)) | (share >= 1))
    return torch.zeros_like(kept).scatter_(-1, order, kept)


def uniform(seeds: Tensor, indices: Tensor) -> Tensor:
    """Numbers in [0, 1), one for each (seed, index): int64 tensors that broadcast -> float64.

    SplitMix64 (Steele et al., 2014) read as a counter: hashed seed, then `index` steps on.
    """
    state = _mix(seeds + _signed(_GOLDEN)) + (indices + 1) * _signed(_GOLDEN)
    # 52 bits, so that the share of a total always rounds to less than the total.
    return _shift_right(_mix(state), 12).double() * 2.0**-52


def _mix(state: Tensor) -> Tensor:
    state = (state ^ _shift_right(state, 30)) * _signed(_MIX_1)
    state = (state ^ _shift_right(state, 27)) * _signed(_MIX_2)
    return state ^ _shift_right(state, 31)


def _shift_right(state: Tensor, bits: int) -> Tensor:
    """A logical shift: torch's own copies the sign."""
    return (state >> bits) & ((1 << (64 - bits)) - 1)


def _signed(value: int) -> int:
    """The int64 with the same low 64 bits."""
    value &= (1 << 64) - 1
    return value - (1 << 64) if value >> 63 else value
