"""Attention in decode, over prompts, and over trees of draft tokens."""

import sgl_kernel
import torch
from sglang.kernels.ops.attention.decode_attention import decode_attention_fwd
from sglang.kernels.ops.attention.extend_attention import extend_attention_fwd
from torch import Tensor

from tests.sglang_engine.against_triton.inputs import (
    NUM_SLOTS,
    POOL_LEN,
    Batch,
    Outputs,
    offsets_of,
    random_batch,
    random_windows,
)
from tests.sglang_engine.against_triton.trees import random_tree

NUM_HEADS, NUM_KV_HEADS, HEAD_DIM = 4, 2, 16
SCALE = HEAD_DIM**-0.5


def decode_attention_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    """The newest key and value are stored by the stand-in, and lie there for the reference."""
    batch = random_batch(rng)
    keys, values = torch.randn(2, NUM_SLOTS, NUM_KV_HEADS, HEAD_DIM, generator=rng)
    query = torch.randn(batch.size, NUM_HEADS, HEAD_DIM, generator=rng)
    newest = batch.req_to_token[batch.rows, batch.seq_lens - 1].long()
    our_keys, our_values = keys.index_fill(0, newest, 0.0), values.index_fill(0, newest, 0.0)
    ours, theirs = torch.empty_like(query), torch.empty_like(query)
    torch.ops.sgl_kernel.decode_attention_cpu(
        query,
        our_keys,
        our_values,
        1.0,
        1.0,
        ours,
        keys[newest],
        values[newest],
        newest,
        query,
        batch.req_to_token,
        batch.rows,
        batch.seq_lens,
        SCALE,
        0.0,
        False,
        0,
        None,
        None,
    )
    num_splits = 2
    decode_attention_fwd(
        query,
        keys,
        values,
        theirs,
        offsets_of(batch.seq_lens),
        batch.slots(),
        torch.empty(batch.size, NUM_HEADS, num_splits, HEAD_DIM),
        torch.empty(batch.size, NUM_HEADS, num_splits),
        torch.full((batch.size,), num_splits, dtype=torch.int32),
        num_splits,
        SCALE,
        1.0,
        1.0,
    )
    return (ours, our_keys, our_values), (theirs, keys, values)


def extend_attention_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    """Prompts, of which a part may be cached."""
    batch, ends = random_windows(rng)
    return compare_extend(rng, Batch(batch.req_to_token, batch.rows, ends), ends - batch.seq_lens)


def extend_attention_tree_case(rng: torch.Generator) -> tuple[Outputs, Outputs]:
    """Trees of draft tokens after their sequences."""
    tree = random_tree(rng)
    mask, *_ = tree.built()
    batch = Batch(random_batch(rng).req_to_token, torch.arange(2), tree.seq_lens + tree.num_tokens)
    return compare_extend(rng, batch, torch.full((2,), tree.num_tokens), mask)


def compare_extend(
    rng: torch.Generator, batch: Batch, lengths: Tensor, tree_mask: Tensor | None = None
) -> tuple[Outputs, Outputs]:
    """Attend the last `lengths` [B] tokens of each request."""
    prefixes = Batch(batch.req_to_token, batch.rows, batch.seq_lens - lengths)
    keys, values = torch.randn(2, NUM_SLOTS, NUM_KV_HEADS, HEAD_DIM, generator=rng)
    query = torch.randn(int(lengths.sum()), NUM_HEADS, HEAD_DIM, generator=rng)
    starts = offsets_of(lengths)
    ours, theirs = torch.empty_like(query), torch.empty_like(query)
    torch.ops.sgl_kernel.extend_attention_cpu(
        query,
        None,
        None,
        ours,
        keys,
        values,
        1.0,
        1.0,
        batch.req_to_token,
        batch.rows,
        batch.seq_lens,
        lengths,
        starts[:-1],
        int(lengths.max()),
        SCALE,
        0.0,
        False,
        0,
        None,
        None,
        tree_mask,
        True,
    )
    new = torch.empty(len(query), dtype=torch.long)
    sgl_kernel.assign_extend_cache_locs_cpu(
        batch.rows, batch.req_to_token, prefixes.seq_lens, batch.seq_lens, new, POOL_LEN
    )
    full_mask = None if tree_mask is None else mask_with_prefix(tree_mask, prefixes, lengths)
    extend_attention_fwd(
        query,
        keys[new],
        values[new],
        theirs,
        keys,
        values,
        starts,
        offsets_of(prefixes.seq_lens),
        prefixes.slots(),
        full_mask,
        True,
        None if full_mask is None else offsets_of(lengths * batch.seq_lens),
        int(lengths.max()),
        1.0,
        1.0,
        SCALE,
    )
    return (ours,), (theirs,)


def mask_with_prefix(tree_mask: Tensor, prefixes: Batch, lengths: Tensor) -> Tensor:
    """The mask as the GPU kernels take it: with columns for the tokens before the tree."""
    num_tokens = int(lengths[0])
    parts = zip(tree_mask.view(-1, num_tokens, num_tokens), prefixes.seq_lens.tolist(), strict=True)
    prefix_visible = torch.ones(num_tokens, POOL_LEN, dtype=torch.bool)
    return torch.cat([torch.cat([prefix_visible[:, :n], m], dim=1).flatten() for m, n in parts])
