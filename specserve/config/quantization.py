"""Group `quantization`: the target's weights, and explicitly the draft's."""

from typing import Annotated, Literal

from pydantic import Field

from specserve.config.strict import StrictModel

DraftQuantization = Literal["none", "inherit", "int8", "int4"]


class NoQuantization(StrictModel):
    """Weights as the checkpoint stores them, in the activation type."""

    kind: Literal["none"]
    draft: DraftQuantization


class Int8Quantization(StrictModel):
    """8-bit weights, quantized while loading (weight only, one scale a row)."""

    kind: Literal["int8"]
    draft: DraftQuantization


class Int4Quantization(StrictModel):
    """4-bit weights, quantized while loading (weight only, one scale a group)."""

    kind: Literal["int4"]
    group_size: int = Field(ge=32, le=256, multiple_of=32)
    draft: DraftQuantization


class CompressedTensorsInt4(StrictModel):
    """A checkpoint that is stored in 4 bits already (compressed-tensors)."""

    kind: Literal["compressed_tensors_int4"]
    group_size: int = Field(ge=32, le=256, multiple_of=32)
    draft: DraftQuantization


QuantizationConfig = Annotated[
    NoQuantization | Int8Quantization | Int4Quantization | CompressedTensorsInt4,
    Field(discriminator="kind"),
]
