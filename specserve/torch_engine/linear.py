"""Linear layers that can hold their weights in the layout that a CPU multiplies fastest.

Decoding streams every weight through the cache for a handful of tokens. With the weights packed by
oneDNN that takes down to a ninth of the time that the plain product needs, depending on shape and
threads; verifying a chain then costs hardly more than one token.
"""

import torch
from torch import Tensor, nn
from torch.nn import functional

# The operators that torch.compile uses for frozen weights. They run without it, too.
_OPERATORS = ("_linear_pointwise", "_reorder_linear_weight")
# Below so many weights the plain product is done before oneDNN has begun.
_LEAST_WEIGHTS = 1 << 15
# The layout is chosen for about so many tokens; it serves any other number as well.
_TYPICAL_TOKENS = 4


class Linear(nn.Linear):
    """x W^T + b. A packed weight still has its shape and dtype, but no elements to be read."""

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        # Looked up in the dictionary: `self.weight` takes ten times as long (nn.Module finds
        # parameters last), as long as a small operation.
        tensors = self._parameters
        weight, bias = tensors["weight"], tensors["bias"]
        if weight.is_mkldnn:  # type: ignore[union-attr]
            return torch.ops.mkldnn._linear_pointwise.default(  # type: ignore[no-any-return]
                x, weight, bias, "none", [], None
            )
        return functional.linear(x, weight, bias)  # type: ignore[arg-type]


def pack(linear: Linear) -> None:
    """Pack the weights of a layer where that pays; else leave it.

    It pays in float32 on a CPU, if this build of torch has oneDNN. Weights that were shared are
    then held twice.
    """
    weight = linear.weight
    is_plain_float = type(weight.data) is Tensor and weight.dtype is torch.float32
    on_cpu = weight.device.type == "cpu"
    if is_plain_float and on_cpu and weight.numel() >= _LEAST_WEIGHTS and can_pack():
        packed = torch.ops.mkldnn._reorder_linear_weight(weight.detach(), _TYPICAL_TOKENS)
        linear.weight = nn.Parameter(packed, requires_grad=False)


def pack_all(module: nn.Module) -> None:
    """Pack every linear layer in `module` where that pays."""
    for part in module.modules():
        if isinstance(part, Linear):
            pack(part)


def can_pack() -> bool:
    """Whether this build of torch has the operators."""
    has_library: bool = torch.backends.mkldnn.is_available()  # type: ignore[no-untyped-call]
    return has_library and all(hasattr(torch.ops.mkldnn, name) for name in _OPERATORS)
