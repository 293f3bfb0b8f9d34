"""The stand-in kernels compute what SGLang's own Triton kernels compute."""

import json
import subprocess
import sys

import pytest

from tests.sglang_engine.cpu_sglang import environment

PROGRAM = "tests.sglang_engine.against_triton"
NUM_SEEDS = 4
KERNELS = (
    "assign_draft_cache_locs_contiguous",
    "assign_extend_cache_locs",
    "assign_req_to_token_pool",
    "build_draft_decode_metadata",
    "build_tree_kernel_efficient",
    "copy_all_layer_kv_cache",
    "decode_attention",
    "extend_attention",
    "extend_attention_tree",
    "fill_accept_out_cache_loc",
    "fill_bonus_tokens",
    "verify_tree_greedy",
)

pytestmark = [pytest.mark.timeout(600), pytest.mark.xdist_group("sglang")]


@pytest.fixture(scope="module")
def differing_seeds(sglang_installed: None) -> dict[str, list[int]]:
    """By kernel, the seeds for which the two differ. Interpreted kernels are slow: one run."""
    finished = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", PROGRAM, str(NUM_SEEDS)],
        env=environment({"TRITON_INTERPRET": "1"}),
        capture_output=True,
        text=True,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    seeds: dict[str, list[int]] = json.loads(finished.stdout.splitlines()[-1])
    return seeds


def test_every_kernel_is_compared(differing_seeds: dict[str, list[int]]) -> None:
    assert sorted(KERNELS) == sorted(differing_seeds)


@pytest.mark.parametrize("kernel", KERNELS)
def test_stand_in_equals_triton(kernel: str, differing_seeds: dict[str, list[int]]) -> None:
    assert [] == differing_seeds[kernel]
