"""The rows that decode together in one pass, and what the host knows of them at launch."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from specserve.engine import GenerationRequest
from specserve.plan import SpeculationPlan
from specserve.torch_engine.sampling import SamplingBatch, make_sampling_batch
from specserve.torch_engine.tree import num_tree_nodes


@dataclass(frozen=True, slots=True, kw_only=True)
class LogprobRows:
    """Which rows of a group want logprobs, and the most alternatives that one of them wants."""

    rows: Tensor
    num_top: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """`num_rows` neighbouring rows. Made anew only when a request comes or goes."""

    first_row: int
    num_rows: int
    sampling: SamplingBatch
    logprobs: LogprobRows | None

    @property
    def rows(self) -> slice:
        """The rows as an index."""
        return slice(self.first_row, self.first_row + self.num_rows)


@dataclass(frozen=True, slots=True, kw_only=True)
class Depth:
    """How a speculative round drafts: a chain for `topk` 1, else a tree."""

    num_steps: int
    topk: int
    num_draft_tokens: int


def make_depth(built: SpeculationPlan, num_steps: int) -> Depth:
    """The depth for a round of `num_steps`, which may be less than what was built."""
    return Depth(
        num_steps=num_steps,
        topk=built.topk,
        num_draft_tokens=num_tree_nodes(num_steps, built.topk, built.num_draft_tokens),
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Window:
    """Bounds on a group's counts; the true ones are on the device, perhaps not computed yet.

    No row has more than `kv_tokens` tokens in the target's cache, nor lacks more than `num_pairs`
    draft entries; where one may, `skips` is set and the oldest are given up. `lengths_known`: every
    row has exactly `kv_tokens`. `entries_known`: and lacks exactly `num_pairs`, none earlier.
    """

    kv_tokens: int
    num_pairs: int
    skips: bool
    lengths_known: bool
    entries_known: bool


def make_group(
    first_row: int, requests: Sequence[GenerationRequest], vocab_size: int, device: torch.device
) -> Group:
    """The group of these requests, in row order."""
    wanting = [
        (row, request.top_logprobs)
        for row, request in enumerate(requests)
        if request.top_logprobs is not None
    ]
    return Group(
        first_row=first_row,
        num_rows=len(requests),
        sampling=make_sampling_batch([one.sampling for one in requests], vocab_size, device),
        logprobs=LogprobRows(
            rows=torch.tensor([row for row, _ in wanting], device=device),
            num_top=max(num_top for _, num_top in wanting),
        )
        if wanting
        else None,
    )
