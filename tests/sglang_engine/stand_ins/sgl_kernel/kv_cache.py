"""Moving rows inside the KV buffers of all layers, which come as raw addresses."""

import ctypes

import torch
from torch import Tensor


def copy_all_layer_kv_cache_cpu(
    data_ptrs: Tensor, strides: Tensor, tgt_loc: Tensor, src_loc: Tensor
) -> None:
    """Copy rows `src_loc` [N] to rows `tgt_loc` [N] in every buffer.

    Buffers are addresses `data_ptrs` [buffers] with rows of `strides` [buffers] bytes. The rows
    may overlap: all are read before one is written.
    """
    if src_loc.numel() == 0:
        return
    source, target = src_loc.long(), tgt_loc.long()
    num_rows = int(torch.maximum(source.max(), target.max())) + 1
    for address, stride in zip(data_ptrs.tolist(), strides.tolist(), strict=True):
        memory = (ctypes.c_uint8 * (num_rows * stride)).from_address(address)
        rows = torch.frombuffer(memory, dtype=torch.uint8).view(num_rows, stride)
        rows[target] = rows[source]
