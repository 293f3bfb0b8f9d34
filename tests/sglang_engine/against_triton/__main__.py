"""Run the stand-in kernels and SGLang's Triton kernels on the same random input, and compare.

    TRITON_INTERPRET=1 python -m tests.sglang_engine.against_triton SEEDS

prints, as JSON, the seeds for which they differ, by kernel. A process of its own, because Triton
reads the variable when a kernel is defined; the stand-ins must come first on the path.
"""

import json
import sys

import torch

from tests.sglang_engine.against_triton import attention_cases, slot_cases, tree_cases
from tests.sglang_engine.against_triton.inputs import Case

CASES: tuple[Case, ...] = (
    slot_cases.assign_draft_cache_locs_contiguous_case,
    slot_cases.assign_extend_cache_locs_case,
    slot_cases.assign_req_to_token_pool_case,
    slot_cases.build_draft_decode_metadata_case,
    slot_cases.copy_all_layer_kv_cache_case,
    slot_cases.fill_accept_out_cache_loc_case,
    tree_cases.build_tree_kernel_efficient_case,
    tree_cases.fill_bonus_tokens_case,
    tree_cases.verify_tree_greedy_case,
    attention_cases.decode_attention_case,
    attention_cases.extend_attention_case,
    attention_cases.extend_attention_tree_case,
)


def main() -> None:
    """Compare every case for the seeds 0 to SEEDS - 1."""
    seeds = range(int(sys.argv[1]))
    found = {name_of(case): [seed for seed in seeds if differ(case, seed)] for case in CASES}
    sys.stdout.write(json.dumps(found) + "\n")


def name_of(case: Case) -> str:
    return case.__name__.removesuffix("_case")


def differ(case: Case, seed: int) -> bool:
    """Whether stand-in and reference disagree; floating-point outputs may by rounding."""
    ours, theirs = case(torch.Generator().manual_seed(seed))
    return not all(
        torch.allclose(left, right, atol=1e-5) if left.is_floating_point() else left.equal(right)
        for left, right in zip(ours, theirs, strict=True)
    )


if __name__ == "__main__":
    main()
