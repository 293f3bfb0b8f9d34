from dataclasses import replace

import pytest
import torch
from torch import Tensor

from specserve.torch_engine.block import Block, BlockShape

SHAPE = BlockShape(
    hidden_size=16,
    input_size=16,
    intermediate_size=24,
    num_heads=4,
    num_kv_heads=2,
    head_dim=8,
    norm_eps=1e-5,
    qkv_bias=False,
    output_bias=False,
    mlp_bias=False,
    qk_norm=False,
)


def make_block(shape: BlockShape) -> Block:
    block = Block(shape).requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for parameter in block.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return block


def queries_for(layer: int, projected: Tensor) -> Tensor:
    """An attention that hands back the queries: what is left is arithmetic on single tokens."""
    return projected[..., :32] + layer


def random_hidden(width: int = 16) -> Tensor:
    return torch.randn(2, 3, width, generator=torch.Generator().manual_seed(1))


def normed(x: Tensor, weight: Tensor) -> Tensor:
    return x * (x.square().mean(-1, keepdim=True) + SHAPE.norm_eps).rsqrt() * weight


@pytest.mark.parametrize("biased", [False, True])
def test_is_attention_then_a_swiglu_mlp_each_added_to_the_residual(biased: bool) -> None:
    shape = replace(SHAPE, qkv_bias=biased, output_bias=biased, mlp_bias=biased)
    block = make_block(shape)
    hidden = random_hidden()

    def linear(x: Tensor, name: str) -> Tensor:
        product = x @ block.get_parameter(f"{name}.weight").T
        return product + block.get_parameter(f"{name}.bias") if biased else product

    projected = linear(normed(hidden, block.input_layernorm.weight), "qkv_proj")
    middle = hidden + linear(queries_for(5, projected), "o_proj")
    gate, up = linear(normed(middle, block.post_attention_layernorm.weight), "gate_up_proj").chunk(
        2, dim=-1
    )
    expected = middle + linear(gate * gate.sigmoid() * up, "down_proj")

    torch.testing.assert_close(expected, block(hidden, queries_for, 5), rtol=1e-4, atol=1e-4)


def test_the_residual_is_not_written_to() -> None:
    """It may be a captured feature, or the fused feature of a draft."""
    block, residual = make_block(SHAPE), random_hidden()
    before = residual.clone()

    block.attend_from(random_hidden(), residual, queries_for, 0)

    assert torch.equal(before, residual)


def test_qk_norm_norms_each_query_and_key_head_and_no_value() -> None:
    block = make_block(replace(SHAPE, qk_norm=True))
    seen: list[Tensor] = []

    def record(layer: int, projected: Tensor) -> Tensor:
        seen.append(projected.clone())
        return projected[..., :32]

    x = random_hidden()
    block.attend_from(x, random_hidden(), record, 0)

    plain = (x @ block.qkv_proj.weight.T).view(2, 3, 8, 8)
    expected = torch.cat((normed(plain[:, :, :6], block.qk_norm.weight), plain[:, :, 6:]), dim=2)
    torch.testing.assert_close(expected.flatten(2), seen[0], rtol=1e-4, atol=1e-4)
