"""Weight-only quantization of linear layers through torchao: 8 bits a row, or 4 bits a group.

Only the layers' matrices: the embedding and the lm_head keep the activation type, because every
token goes through them.
"""

from dataclasses import dataclass
from typing import Any, Literal, assert_never

import torch
from torch import Tensor, nn

from specserve.errors import EngineError

_GROUP_SIZES = {"cpu": (32, 64, 128), "cuda": (32, 64, 128, 256)}
_INSTALL = "install it with: pip install 'torchao>=0.18'"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantization:
    """How matrices are held: in 8 bits, or in 4 bits with a scale for `group_size` weights."""

    scheme: Literal["int8", "int4"]
    group_size: int | None


def read_quantization(scheme: str, group_size: int | None) -> Quantization | None:
    """A plan's words; None for "none". Raises EngineError for what this engine can't hold."""
    match scheme:
        case "none":
            return None
        case "int8":
            return Quantization(scheme="int8", group_size=None)
        case "int4" if group_size is not None:
            return Quantization(scheme="int4", group_size=group_size)
        case _:
            raise EngineError(
                f"quantization {scheme!r} with group size {group_size}: the torch engine holds "
                "int8, or int4 with a group size"
            )


def quantize(module: nn.Module, quantization: Quantization | None) -> None:
    """Quantize every linear layer in `module`, in place.

    Raises EngineError without torchao, or if the device has no kernel for a layer's dtype, width
    or group size: no layer is left out silently.
    """
    if quantization is None:
        return
    linears = [part for part in module.modules() if isinstance(part, nn.Linear)]
    for linear in linears:
        _check_fits(linear.weight, quantization)
    config, apply = _torchao(quantization, linears[0].weight.device.type)
    apply(module, config, filter_fn=lambda part, _: isinstance(part, nn.Linear))
    num_plain = sum(not is_quantized(linear.weight) for linear in linears)
    if num_plain:
        raise EngineError(f"torchao left {num_plain} of {len(linears)} layers unquantized")


def is_quantized(weight: Tensor) -> bool:
    """Whether a weight is held by torchao."""
    return hasattr(weight.data, "__tensor_flatten__")


def held_bytes(weight: Tensor) -> int:
    """Bytes of a weight; of a quantized one, of the tensors that it consists of."""
    if not is_quantized(weight):
        return weight.nbytes
    names, _ = weight.data.__tensor_flatten__()  # type: ignore[attr-defined]
    return sum(held_bytes(getattr(weight.data, name)) for name in names)


def _check_fits(weight: Tensor, quantization: Quantization) -> None:
    """The demands of the 4-bit kernels; the 8-bit path has none."""
    group_size, device = quantization.group_size, weight.device.type
    if group_size is None:
        return
    if group_size not in _GROUP_SIZES[device]:
        raise EngineError(
            f"int4 on {device} has kernels for groups of {_GROUP_SIZES[device]}, not {group_size}"
        )
    if weight.shape[1] % group_size:
        raise EngineError(
            f"int4 with groups of {group_size} can't hold a matrix {list(weight.shape)}: "
            "the group must divide its inputs"
        )
    if device == "cuda" and weight.dtype is not torch.bfloat16:
        raise EngineError(f"int4 on cuda computes in bfloat16, not in {weight.dtype}")


def _torchao(quantization: Quantization, device: str) -> tuple[Any, Any]:
    """torchao's configuration for this device, and its function that applies one.

    Imported here because it is heavy, and optional.
    """
    try:
        from torchao import quantization as ao  # type: ignore[import-untyped]

        match quantization.scheme, device:
            case "int8", _:
                return ao.Int8WeightOnlyConfig(set_inductor_config=False), ao.quantize_
            case "int4", "cuda":
                config = ao.Int4WeightOnlyConfig(
                    group_size=quantization.group_size,
                    int4_packing_format="tile_packed_to_4d",
                    set_inductor_config=False,
                )
                return config, ao.quantize_
            case "int4", _:
                # torchao keeps its packing for torch's 4-bit CPU kernel among the prototypes.
                from torchao.prototype.quantization.int4 import (  # type: ignore[import-untyped]
                    PrototypeInt4WeightOnlyConfig,
                )

                config = PrototypeInt4WeightOnlyConfig(
                    group_size=quantization.group_size, set_inductor_config=False
                )
                return config, ao.quantize_
            case _:
                assert_never(quantization.scheme)
    except ImportError as error:
        raise EngineError(
            f"quantization {quantization.scheme} needs torchao, and it can't be used here "
            f"({error}); {_INSTALL}"
        ) from error
