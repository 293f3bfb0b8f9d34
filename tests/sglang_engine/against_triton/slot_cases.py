"""Kernels that read and write slots and rows of the KV cache."""

import sgl_kernel
import torch
from sglang.kernels.ops.kvcache.cache_move import copy_all_layer_kv_cache_tiled
from sglang.kernels.ops.speculative import cache_locs, eagle
from sglang.srt.mem_cache.allocation import assign_req_to_token_pool
from torch import Tensor

from tests.sglang_engine.against_triton.inputs import (
    NUM_ROWS,
    POOL_LEN,
    Batch,
    Outputs,
    integer,
    random_batch,
    random_windows,
)


def assign_req_to_token_pool_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    batch, ends = random_windows(rng)
    packed = torch.randperm(1000, generator=rng)[: int((ends - batch.seq_lens).sum())]
    ours, theirs = batch.req_to_token.clone(), batch.req_to_token.clone()
    sgl_kernel.assign_req_to_token_pool_cpu(
        batch.rows, ours, batch.seq_lens, ends, packed, POOL_LEN
    )
    assign_req_to_token_pool[(batch.size,)](
        batch.rows, theirs, batch.seq_lens, ends, packed, POOL_LEN, bs_upper=8
    )
    return (ours,), (theirs,)


def assign_extend_cache_locs_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    batch, ends = random_windows(rng)
    arguments = (batch.rows, batch.req_to_token, batch.seq_lens, ends)
    ours = torch.full((int((ends - batch.seq_lens).sum()),), -7)
    theirs = ours.clone()
    sgl_kernel.assign_extend_cache_locs_cpu(*arguments, ours, POOL_LEN)
    cache_locs.assign_extend_cache_locs[(batch.size,)](*arguments, theirs, POOL_LEN, bs_upper=8)
    return (ours,), (theirs,)


def assign_draft_cache_locs_contiguous_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    batch, topk, num_steps = random_batch(rng), integer(rng, 1, 5), integer(rng, 1, 6)
    arguments = (batch.rows, batch.req_to_token, batch.seq_lens)
    ours = torch.full((batch.size * topk * num_steps,), -7)
    theirs = ours.clone()
    sgl_kernel.assign_draft_cache_locs_contiguous_cpu(*arguments, ours, POOL_LEN, topk, num_steps)
    cache_locs.assign_draft_cache_locs_contiguous[(batch.size,)](
        *arguments, theirs, POOL_LEN, topk, num_steps
    )
    return (ours,), (theirs,)


def build_draft_decode_metadata_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    """Read as the draft's attention reads it: each branch's tokens, step by step."""
    batch, topk, num_steps = random_batch(rng), integer(rng, 1, 5), integer(rng, 1, 6)
    table = sgl_kernel.build_draft_decode_metadata_cpu(
        batch.req_to_token, batch.rows, batch.seq_lens, topk, num_steps, POOL_LEN
    )
    branches = Batch(table, torch.arange(batch.size * topk), batch.seq_lens.repeat_interleave(topk))
    ours = [
        Batch(table, branches.rows, branches.seq_lens + step).slots()
        for step in range(1, num_steps + 1)
    ]
    theirs = torch.zeros(num_steps, batch.size * topk * POOL_LEN, dtype=torch.long)
    offsets = torch.zeros(num_steps, batch.size * topk + 1, dtype=torch.long)
    cache_locs.generate_draft_decode_kv_indices[(num_steps, batch.size, topk)](
        batch.rows,
        batch.req_to_token,
        batch.seq_lens,
        theirs,
        offsets,
        branches.seq_lens,
        POOL_LEN,
        theirs.shape[1],
        offsets.shape[1],
        bs_upper=8,
        iter_upper=8,
        num_tokens_upper=32,
        page_size=1,
    )
    return tuple(ours), tuple(
        slots[: int(ends[-1])] for slots, ends in zip(theirs, offsets, strict=True)
    )


def copy_all_layer_kv_cache_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    """Sources and targets overlap, as when accepted rows move to the front."""
    shapes = ((NUM_ROWS, 3, 4), (NUM_ROWS, 5), (NUM_ROWS, 1))
    ours = [torch.randn(shape, generator=rng) for shape in shapes]
    theirs = [buffer.clone() for buffer in ours]
    strides = torch.tensor([buffer[0].nbytes for buffer in ours])
    count = integer(rng, 0, 6)
    source, target = (torch.randperm(NUM_ROWS, generator=rng)[:count] for _ in range(2))
    sgl_kernel.copy_all_layer_kv_cache_cpu(addresses(ours), strides, target, source)
    copy_all_layer_kv_cache_tiled[(len(theirs), 2)](
        addresses(theirs), strides, target, source, count, 8, BYTES_PER_TILE=32
    )
    return tuple(ours), tuple(theirs)


def fill_accept_out_cache_loc_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    size = integer(rng, 1, 17)
    index = torch.randperm(size, generator=rng)
    index[torch.rand(size, generator=rng) < 0.5] = -1
    slots = torch.randperm(500, generator=rng)[:size]
    ours, theirs = torch.full((2, size), -7)
    sgl_kernel.fill_accept_out_cache_loc_cpu(index, slots, ours)
    eagle.fill_accept_out_cache_loc[(size,)](index, slots, theirs, 16)
    return (ours,), (theirs,)


def addresses(buffers: list[Tensor]) -> Tensor:
    return torch.tensor([buffer.data_ptr() for buffer in buffers], dtype=torch.uint64)
