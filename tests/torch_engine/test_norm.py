import pytest
import torch

from specserve.torch_engine.norm import RmsNorm

EPS = 1e-5


def reference(x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
    mean_square = x.double().square().mean(-1, keepdim=True)
    return x.double() / (mean_square + EPS).sqrt() * weight.double()


@pytest.mark.parametrize("shape", [(24,), (3, 24)], ids=["one weight", "a weight a head"])
@pytest.mark.parametrize("scale", [0.0, 1e-4, 1.0, 1e4])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_is_the_root_mean_square_norm(
    shape: tuple[int, ...], scale: float, dtype: torch.dtype
) -> None:
    generator = torch.Generator().manual_seed(0)
    norm = RmsNorm(shape, EPS)
    norm.weight.copy_(torch.randn(shape, generator=generator))
    norm.to(dtype)
    x = (scale * torch.randn(2, 5, 3, 24, generator=generator)).to(dtype)
    before = x.clone()

    normed = norm(x)

    assert dtype is normed.dtype
    torch.testing.assert_close(reference(x, norm.weight).to(dtype), normed)
    assert torch.equal(before, x)
