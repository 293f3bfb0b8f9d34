"""Linear layers in the layout that a CPU multiplies fastest.

Decoding streams every weight through the cache for a handful of tokens. With the weights packed by
oneDNN that takes a half to a ninth of the time that the plain product needs, depending on shape and
threads; verifying a chain then costs hardly more than one token.
"""

from typing import Self

import torch
from torch import Tensor, nn

# The operators that torch.compile uses for frozen weights. They run without it, too.
_OPERATORS = ("_linear_pointwise", "_reorder_linear_weight")
# Below so many weights the plain product is done before oneDNN has begun.
_LEAST_WEIGHTS = 1 << 15
# The layout is chosen for about so many tokens; it serves any other number as well.
_TYPICAL_TOKENS = 4


class PackedLinear(nn.Module):
    """x W^T + b in float32 on a CPU. `weight` is opaque: it has no elements to be read one by one.

    Where W is shared with somebody who needs it plain (an embedding), the packed one is a copy
    beside it.
    """

    def __init__(self, packed: Tensor, bias: Tensor | None) -> None:
        super().__init__()
        self.weight: Tensor
        self.register_buffer("weight", packed)
        self.bias: Tensor | None
        self.register_buffer("bias", bias)
        self._linear = torch.ops.mkldnn._linear_pointwise.default

    @classmethod
    def of(cls, linear: nn.Linear) -> Self:
        """Pack a plain layer; the layer itself stays as it is."""
        pack = torch.ops.mkldnn._reorder_linear_weight
        bias = None if linear.bias is None else linear.bias.detach()
        return cls(pack(linear.weight.detach(), _TYPICAL_TOKENS), bias)

    def forward(self, x: Tensor) -> Tensor:
        """[..., in] -> [..., out]."""
        product: Tensor = self._linear(x, self.weight, self.bias, "none", [], None)
        return product


def pack(module: nn.Module) -> None:
    """Replace the plain linear layers below `module` by packed ones, where that pays.

    Only in float32 on a CPU, and only if this build of torch has oneDNN. Otherwise nothing changes.
    """
    for name, child in module.named_children():
        if isinstance(child, nn.Linear):
            if _pays(child):
                module.register_module(name, PackedLinear.of(child))
        else:
            pack(child)


def can_pack() -> bool:
    """Whether this build of torch has the operators."""
    return torch.backends.mkldnn.is_available() and all(
        hasattr(torch.ops.mkldnn, name) for name in _OPERATORS
    )


def dense_weight(linear: nn.Module) -> Tensor:
    """A layer's weight [out, in] in the plain layout: its own, or unpacked."""
    weight = linear.get_buffer("weight") if isinstance(linear, PackedLinear) else linear.weight
    dense: Tensor = weight.to_dense() if weight.is_mkldnn else weight
    return dense


def _pays(linear: nn.Linear) -> bool:
    weight = linear.weight
    is_plain = type(weight.data) is Tensor and weight.dtype is torch.float32
    return (
        is_plain
        and weight.device.type == "cpu"
        and weight.numel() >= _LEAST_WEIGHTS
        and can_pack()
    )
