import math

import pytest
import torch
from transformers import LlamaConfig
from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

from specserve.torch_engine.rope import (
    Llama3Scaling,
    Rope,
    frequencies,
    pair_rows,
    rotate_,
    rotations,
)

CPU = torch.device("cpu")
HEAD_DIM = 16
PLAIN = Rope(theta=10000.0, scaling=None)
LLAMA3 = Llama3Scaling(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0, original_positions=64)


def halves_rotated(heads: torch.Tensor, positions: torch.Tensor) -> torch.Tensor:
    """The textbook form on stored order: element i turns with element i + D/2."""
    angles = positions[..., None, None] * frequencies(PLAIN, HEAD_DIM, CPU)
    first, second = heads.chunk(2, dim=-1)
    return torch.cat(
        (
            first * angles.cos() - second * angles.sin(),
            second * angles.cos() + first * angles.sin(),
        ),
        dim=-1,
    )


def to_pairs(heads: torch.Tensor) -> torch.Tensor:
    return pair_rows(heads.flatten(), HEAD_DIM).view(heads.shape)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float16])
def test_rotated_pairs_are_the_textbook_rotation_reordered(dtype: torch.dtype) -> None:
    generator = torch.Generator().manual_seed(0)
    heads = torch.randn(2, 3, 5, HEAD_DIM, generator=generator).to(dtype)
    positions = torch.tensor([[0, 1, 2], [7, 100, 5]])
    expected = to_pairs(halves_rotated(heads.float(), positions))

    pairs = to_pairs(heads)
    rotate_(pairs, rotations(positions, frequencies(PLAIN, HEAD_DIM, CPU)))

    assert pairs.dtype is dtype
    torch.testing.assert_close(expected.to(dtype), pairs)


def test_rotation_is_written_through_a_slice_and_leaves_the_rest() -> None:
    heads = torch.randn(1, 1, 3, HEAD_DIM, generator=torch.Generator().manual_seed(0))
    before = heads.clone()

    rotate_(heads[:, :, :2], rotations(torch.tensor([[3]]), frequencies(PLAIN, HEAD_DIM, CPU)))

    assert torch.equal(before[:, :, 2], heads[:, :, 2])
    assert not torch.equal(before[:, :, :2], heads[:, :, :2])


def test_pair_rows_puts_the_two_of_a_pair_side_by_side_in_every_head() -> None:
    rows = torch.arange(8)

    assert [0, 2, 1, 3, 4, 6, 5, 7] == pair_rows(rows, 4).tolist()
    assert [[0], [2], [1], [3]] == pair_rows(rows[:4, None], 4).tolist()


@pytest.mark.parametrize("theta", [10000.0, 500000.0])
def test_llama3_scaling_equals_transformers(theta: float) -> None:
    config = LlamaConfig(
        head_dim=64,
        max_position_embeddings=512,
        rope_parameters={
            "rope_type": "llama3",
            "rope_theta": theta,
            "factor": LLAMA3.factor,
            "low_freq_factor": LLAMA3.low_freq_factor,
            "high_freq_factor": LLAMA3.high_freq_factor,
            "original_max_position_embeddings": LLAMA3.original_positions,
        },
    )
    expected, _ = ROPE_INIT_FUNCTIONS["llama3"](config, CPU)

    torch.testing.assert_close(
        expected, frequencies(Rope(theta=theta, scaling=LLAMA3), 64, CPU), rtol=1e-6, atol=0
    )


def test_llama3_scaling_keeps_fast_frequencies_and_divides_slow_ones() -> None:
    plain = frequencies(PLAIN, 64, CPU)
    scaled = frequencies(Rope(theta=10000.0, scaling=LLAMA3), 64, CPU)
    wavelengths = 2 * math.pi / plain

    assert torch.equal(plain[wavelengths < 16], scaled[wavelengths < 16])
    torch.testing.assert_close(plain[wavelengths > 64] / 8, scaled[wavelengths > 64])
