"""Linear layers, and how they read their weights on a CPU.

Decoding multiplies every weight with a handful of tokens, so it lasts as long as the weights take
to come out of memory, and a plain product asks for them in an order that the CPU can't foresee. Two
remedies:

- packed: oneDNN's own layout. It scales with threads and serves matrices of any size; verifying a
  chain then costs hardly more than one token. But each call has its price.
- read ahead: one sum over a matrix that fits into a core's cache fetches it at full speed; the
  product then finds it there. For one thread and small matrices the fastest way by far.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

# Below so many weights the plain product is done before either remedy pays.
_LEAST_WEIGHTS = 1 << 15
# A core's second-level cache on today's servers and laptops is at least as large.
_CACHE_BYTES = 1 << 20
# oneDNN chooses its layout for about so many tokens; it serves any other number as well.
_TYPICAL_TOKENS = 4
# The operators that torch.compile uses for frozen weights. They run without it, too.
_OPERATORS = ("_linear_pointwise", "_reorder_linear_weight")


class Linear(nn.Linear):
    """x W^T + b. A packed weight still has its shape and dtype, but no elements to be read."""

    def __init__(self, in_features: int, out_features: int, *, bias: bool) -> None:
        super().__init__(in_features, out_features, bias=bias)
        self.reads_ahead = False

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        # Looked up in the dictionary: `self.weight` takes ten times as long (nn.Module finds
        # parameters last), as long as a small operation.
        tensors = self._parameters
        weight, bias = tensors["weight"], tensors["bias"]
        if self.reads_ahead:
            torch.sum(weight)  # type: ignore[arg-type]
        elif weight.is_mkldnn:  # type: ignore[union-attr]
            return torch.ops.mkldnn._linear_pointwise.default(  # type: ignore[no-any-return]
                x, weight, bias, "none", [], None
            )
        return functional.linear(x, weight, bias)  # type: ignore[arg-type]


def speed_up(module: nn.Module) -> None:
    """Choose for each linear layer in `module` how it reads its weights, where that pays.

    It pays in float32 on a CPU. Depends on torch's number of threads. Weights that are shared with
    somebody else are held twice if they are packed.
    """
    for part in module.modules():
        if isinstance(part, Linear) and _is_plain_float_on_cpu(part.weight):
            _speed_up(part)


def can_pack() -> bool:
    """Whether this build of torch has oneDNN and the operators."""
    has_library: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return has_library and all(hasattr(torch.ops.mkldnn, name) for name in _OPERATORS)


def _speed_up(linear: Linear) -> None:
    weight = linear.weight
    if weight.numel() < _LEAST_WEIGHTS:
        return
    if torch.get_num_threads() == 1 and weight.nbytes <= _CACHE_BYTES:
        linear.reads_ahead = True
    elif can_pack():
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _TYPICAL_TOKENS)
        linear.weight = nn.Parameter(packed, requires_grad=False)


def _is_plain_float_on_cpu(weight: Tensor) -> bool:
    return type(weight.data) is Tensor and weight.dtype is torch.float32 and weight.is_cpu
