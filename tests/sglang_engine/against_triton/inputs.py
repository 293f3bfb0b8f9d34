"""Random batches in a slot table, and what a comparison returns."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

NUM_ROWS = 9
POOL_LEN = 96
NUM_SLOTS = NUM_ROWS * POOL_LEN

Outputs = tuple[Tensor, ...]
Case = Callable[[torch.Generator], tuple[Outputs, Outputs]]
"""The outputs of the stand-in, and of SGLang's kernel, for one random input."""


@dataclass(frozen=True)
class Batch:
    """B running requests: their rows of the slot table, and how long they are, [B] each."""

    req_to_token: Tensor
    rows: Tensor
    seq_lens: Tensor

    @property
    def size(self) -> int:
        return self.rows.numel()

    def slots(self) -> Tensor:
        """The slots of all sequences, one sequence after the other."""
        rows_lengths = zip(self.rows.tolist(), self.seq_lens.tolist(), strict=True)
        return torch.cat([self.req_to_token[row, :length].long() for row, length in rows_lengths])


def random_batch(rng: torch.Generator) -> Batch:
    """Up to five requests of 1 to 40 tokens, in a table in which every slot stands once."""
    size = integer(rng, 1, 6)
    return Batch(
        torch.randperm(NUM_SLOTS, generator=rng).int().view(NUM_ROWS, POOL_LEN),
        torch.randperm(NUM_ROWS, generator=rng)[:size],
        torch.randint(1, 41, (size,), generator=rng),
    )


def random_windows(rng: torch.Generator) -> tuple[Batch, Tensor]:
    """A batch, and a later position [B] for each request."""
    batch = random_batch(rng)
    return batch, batch.seq_lens + torch.randint(1, 45, (batch.size,), generator=rng)


def integer(rng: torch.Generator, low: int, high: int) -> int:
    return int(torch.randint(low, high, (), generator=rng))


def offsets_of(lengths: Tensor) -> Tensor:
    """Where each part begins when laid end to end, and where the last one ends, [B + 1]."""
    return torch.cat([torch.zeros(1, dtype=torch.long), lengths.cumsum(0)])
