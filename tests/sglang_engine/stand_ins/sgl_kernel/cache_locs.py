"""Which KV slot each token of each request has: reading and writing SGLang's slot table.

`req_to_token` [R, pool_len] int32 is the table: row r holds, by position, the KV slots of the
request in pool row r. B requests of a batch name their rows in `req_pool_indices` [B]; packed
vectors hold the slots of request 0, then of request 1, and so on.
"""

from collections.abc import Iterator

import torch
from torch import Tensor


def assign_req_to_token_pool_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    start_offset: Tensor,
    end_offset: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
) -> None:
    """Write packed `out_cache_loc` into positions start:end [B] of each request's row."""
    for row, start, end, packed in _windows(req_pool_indices, start_offset, end_offset):
        req_to_token[row, start:end] = out_cache_loc[packed].to(req_to_token.dtype)


def assign_extend_cache_locs_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    start_offset: Tensor,
    end_offset: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
) -> None:
    """Read positions start:end [B] of each request's row into packed `out_cache_loc`."""
    for row, start, end, packed in _windows(req_pool_indices, start_offset, end_offset):
        out_cache_loc[packed] = req_to_token[row, start:end].to(out_cache_loc.dtype)


def assign_draft_cache_locs_contiguous_cpu(
    req_pool_indices: Tensor,
    req_to_token: Tensor,
    seq_lens: Tensor,
    out_cache_loc: Tensor,
    pool_len: int,
    topk: int,
    speculative_num_steps: int,
) -> None:
    """Read the topk × steps slots after each sequence into `out_cache_loc` [B × topk × steps]."""
    assign_extend_cache_locs_cpu(
        req_pool_indices,
        req_to_token,
        seq_lens,
        seq_lens + topk * speculative_num_steps,
        out_cache_loc,
        pool_len,
    )


def build_draft_decode_metadata_cpu(
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    topk: int,
    num_steps: int,
    pool_len: int,
) -> Tensor:
    """A table with a row for every branch, [B × topk, pool_len], as if each were a sequence.

    The slots after a sequence are laid out branch by branch, `num_steps` each. Row b × topk + k
    is request b's row with the slots of branch k moved to the end of the sequence.
    """
    table = req_to_token[req_pool_indices.long(), :pool_len].repeat_interleave(topk, dim=0)
    for row, seq_len in enumerate(seq_lens.repeat_interleave(topk).tolist()):
        branch = seq_len + row % topk * num_steps
        table[row, seq_len : seq_len + num_steps] = table[row, branch : branch + num_steps].clone()
    return table


def fill_accept_out_cache_loc_cpu(
    accept_index: Tensor, out_cache_loc: Tensor, accept_out_cache_loc: Tensor
) -> None:
    """Write the slots that `accept_index` names (-1 names none) to the front of the output."""
    accepted = accept_index[accept_index != -1].long()
    accept_out_cache_loc[: accepted.numel()] = out_cache_loc[accepted]


def _windows(rows: Tensor, starts: Tensor, ends: Tensor) -> Iterator[tuple[int, int, int, slice]]:
    """Each request's row, start and end, and where its window lies in the packed vector."""
    begin = 0
    for row, start, end in torch.stack([rows.long(), starts.long(), ends.long()], dim=1).tolist():
        yield row, start, end, slice(begin, begin + end - start)
        begin += end - start
