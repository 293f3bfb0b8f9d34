"""Read a checkpoint's config.json and safetensors headers, and nothing else."""

from typing import Any

from specserve.config.strict import StrictModel


class TensorHeader(StrictModel):
    """One tensor as the safetensors header declares it; `dtype` in its words (F32, BF16)."""

    dtype: str
    shape: tuple[int, ...]


class CheckpointFacts(StrictModel):
    """What a checkpoint folder says of itself.

    `tensors` is None where only the config is known (a recorded model without files); `d2t` and
    `t2d` are the draft's vocabulary maps (target id = draft id + d2t[draft id]; t2d marks the
    target ids that the draft can propose). `sha256` covers config.json and the headers.
    """

    path: str
    config: dict[str, Any]
    tensors: dict[str, TensorHeader] | None
    d2t: tuple[int, ...] | None
    t2d: tuple[bool, ...] | None
    has_tokenizer: bool
    weight_bytes: int | None
    sha256: str
