"""The type that a checkpoint's weights are stored in, in torch's words."""

from collections import Counter
from typing import Literal, cast, get_args

from specserve.checkpoint.architecture import text_config
from specserve.checkpoint.header import CheckpointFacts

ActivationDtype = Literal["float32", "bfloat16", "float16"]
DTYPE_BYTES: dict[ActivationDtype, int] = {"float32": 4, "bfloat16": 2, "float16": 2}

_TORCH_WORDS = {"F32": "float32", "BF16": "bfloat16", "F16": "float16", "F64": "float64"}


def stored_dtype(checkpoint: CheckpointFacts) -> str | None:
    """config.json's word, else the type of most stored numbers; None where neither is known."""
    inner = text_config(checkpoint.config)
    for config in (inner, checkpoint.config):
        for name in ("dtype", "torch_dtype"):
            if isinstance(config.get(name), str):
                return str(config[name])
    return _most_numbers(checkpoint)


def is_activation_dtype(name: str | None) -> bool:
    """Whether the engines compute in it."""
    return name in get_args(ActivationDtype)


def as_activation_dtype(name: str) -> ActivationDtype:
    """`name` as the type it must be. Raises ValueError for any other."""
    if not is_activation_dtype(name):
        raise ValueError(f"{name!r}: expected one of {', '.join(get_args(ActivationDtype))}")
    return cast(ActivationDtype, name)


def _most_numbers(checkpoint: CheckpointFacts) -> str | None:
    numbers: Counter[str] = Counter()
    for tensor in (checkpoint.tensors or {}).values():
        if tensor.dtype in _TORCH_WORDS:
            numbers[_TORCH_WORDS[tensor.dtype]] += tensor.numel
    return numbers.most_common(1)[0][0] if numbers else None
