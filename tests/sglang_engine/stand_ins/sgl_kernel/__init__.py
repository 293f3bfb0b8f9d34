"""The kernel functions that SGLang's CPU path calls for EAGLE, in torch: a stand-in for tests.

SGLang's own `sgl_kernel` is compiled for CUDA, or for CPUs with AMX. Put before it on the path,
this one lets the real scheduler, workers and models run on any CPU. Names, argument order and
in-place outputs are SGLang's; the Triton kernels beside its call sites are the reference
(`tests/sglang_engine/test_sgl_kernel.py` compares).
"""

from .attention import decode_attention, extend_attention
from .cache_locs import (
    assign_draft_cache_locs_contiguous_cpu,
    assign_extend_cache_locs_cpu,
    assign_req_to_token_pool_cpu,
    build_draft_decode_metadata_cpu,
    fill_accept_out_cache_loc_cpu,
)
from .kv_cache import copy_all_layer_kv_cache_cpu
from .tree import build_tree_kernel_efficient_cpu, fill_bonus_tokens_cpu, verify_tree_greedy_cpu

__all__ = [
    "assign_draft_cache_locs_contiguous_cpu",
    "assign_extend_cache_locs_cpu",
    "assign_req_to_token_pool_cpu",
    "build_draft_decode_metadata_cpu",
    "build_tree_kernel_efficient_cpu",
    "copy_all_layer_kv_cache_cpu",
    "decode_attention",
    "extend_attention",
    "fill_accept_out_cache_loc_cpu",
    "fill_bonus_tokens_cpu",
    "verify_tree_greedy_cpu",
]
