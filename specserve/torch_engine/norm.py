"""Root mean square norm (Zhang & Sennrich, 2019, arXiv:1910.07467)."""

import torch
from torch import Tensor, nn
from torch.nn import functional


class RmsNorm(nn.Module):
    """x / rms(x) * weight, over the last dimension. A weight [H, D] norms every head by its own."""

    def __init__(self, shape: tuple[int, ...], eps: float) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.empty(shape), requires_grad=False)
        self._width = shape[-1]
        self._eps = eps
        self._eps_scalar = torch.tensor(eps, dtype=torch.float32, device="cpu")

    def forward(self, x: Tensor) -> Tensor:
        """The normed x, in x's dtype."""
        weight: Tensor = self._parameters["weight"]  # type: ignore[assignment]  # see Linear
        if x.dtype is torch.float32 and x.is_cpu:
            # Half the time of torch's own norm, which is seven small operations on a CPU.
            length = torch.linalg.vector_norm(x, 2, -1, True)
            mean_square = torch.addcmul(self._eps_scalar, length, length, value=1 / self._width)
            return x.mul(mean_square.rsqrt_()).mul_(weight)
        if weight.dim() == 1:
            return functional.rms_norm(x, (self._width,), weight, self._eps)
        return functional.rms_norm(x, (self._width,), None, self._eps) * weight
