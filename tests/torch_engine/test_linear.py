from collections.abc import Iterator

import pytest
import torch
from torch import Tensor, nn

from specserve.torch_engine.linear import Linear, can_pack, speed_up
from specserve.torch_engine.quantization import Quantization, quantize

WIDE = (1024, 320)  # 1.25 MiB: beyond a core's cache
NARROW = (256, 192)


@pytest.fixture(autouse=True)
def threads() -> Iterator[None]:
    """The number of threads is torch's own state: give it back."""
    before = torch.get_num_threads()
    yield
    torch.set_num_threads(before)


def random_linear(out_features: int, in_features: int, *, bias: bool = False) -> Linear:
    linear = Linear(in_features, out_features, bias=bias).requires_grad_(False)
    generator = torch.Generator().manual_seed(0)
    for parameter in linear.parameters():
        parameter.copy_(torch.randn(parameter.shape, generator=generator))
    return linear


def random_input(*shape: int) -> Tensor:
    return torch.randn(shape, generator=torch.Generator().manual_seed(1))


@pytest.mark.parametrize("num_threads", [1, 2])
@pytest.mark.parametrize("size", [WIDE, NARROW], ids=["wide", "narrow"])
@pytest.mark.parametrize("bias", [False, True])
@pytest.mark.parametrize("shape", [(1, 1), (1, 4), (8, 1), (2, 50), (0, 1)], ids=str)
def test_the_product_stays_the_same(
    num_threads: int, size: tuple[int, int], bias: bool, shape: tuple[int, int]
) -> None:
    torch.set_num_threads(num_threads)
    linear = random_linear(*size, bias=bias)
    x = random_input(*shape, size[1])
    expected = linear(x)

    speed_up(linear)

    torch.testing.assert_close(expected, linear(x), rtol=1e-4, atol=1e-4)


def test_an_input_with_gaps_is_multiplied_as_well() -> None:
    torch.set_num_threads(2)
    linear = random_linear(*NARROW)
    x = random_input(2, 4, 2 * NARROW[1])[:, 1:3, : NARROW[1]]
    expected = linear(x)

    speed_up(linear)

    torch.testing.assert_close(expected, linear(x), rtol=1e-4, atol=1e-4)


@pytest.mark.skipif(not can_pack(), reason="this build of torch has no oneDNN")
@pytest.mark.parametrize(
    ("num_threads", "size", "packed", "reads_ahead"),
    [
        (1, NARROW, False, True),
        (2, NARROW, True, False),
        (1, WIDE, True, False),
        (2, WIDE, True, False),
        (1, (16, 16), False, False),
        (2, (16, 16), False, False),
    ],
)
def test_threads_and_size_decide_how_weights_are_read(
    num_threads: int, size: tuple[int, int], packed: bool, reads_ahead: bool
) -> None:
    torch.set_num_threads(num_threads)
    linear = random_linear(*size)

    speed_up(nn.Sequential(linear))

    assert (packed, reads_ahead) == (linear.weight.is_mkldnn, linear.reads_ahead)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_left_alone(dtype: torch.dtype) -> None:
    torch.set_num_threads(2)
    linear = random_linear(*NARROW).to(dtype)
    weight = linear.weight

    speed_up(linear)

    assert weight is linear.weight
    assert not linear.reads_ahead


def test_quantized_weights_are_left_alone() -> None:
    torch.set_num_threads(2)
    module = nn.Sequential(random_linear(*NARROW))
    quantize(module, Quantization(scheme="int8", group_size=None))
    weight = module[0].weight

    speed_up(module)

    assert weight is module[0].weight


def test_packing_leaves_whoever_shares_the_weight_alone() -> None:
    torch.set_num_threads(2)
    linear = random_linear(*NARROW)
    shared = linear.weight
    before = shared.clone()

    speed_up(linear)

    assert torch.equal(before, shared)
    assert shared.nbytes == linear.weight.nbytes


def test_a_freed_weight_is_really_free() -> None:
    """The fast look-up keeps no second reference."""
    linear = random_linear(*NARROW)
    del linear.weight

    with pytest.raises(KeyError):
        linear(random_input(1, NARROW[1]))
