"""Group `quantization`: the target's weights, and explicitly the draft's."""

from typing import Annotated, Literal

from pydantic import Field

from specserve.config.strict import StrictModel

DraftQuantization = Literal["none", "inherit", "int8", "int4", "fp8"]


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


class Fp8Quantization(StrictModel):
    """8-bit floats: as the checkpoint stores them, else quantized while loading."""

    kind: Literal["fp8"]
    draft: DraftQuantization


class AwqQuantization(StrictModel):
    """A checkpoint that is stored by AWQ in 4 bits."""

    kind: Literal["awq"]
    draft: DraftQuantization


class GptqQuantization(StrictModel):
    """A checkpoint that is stored by GPTQ in 4 or 8 bits."""

    kind: Literal["gptq"]
    draft: DraftQuantization


class Nvfp4Quantization(StrictModel):
    """A checkpoint that is stored in NVIDIA's 4-bit floats, one fp8 scale for 16 weights."""

    kind: Literal["nvfp4"]
    draft: DraftQuantization


QuantizationConfig = Annotated[
    NoQuantization
    | Int8Quantization
    | Int4Quantization
    | CompressedTensorsInt4
    | Fp8Quantization
    | AwqQuantization
    | GptqQuantization
    | Nvfp4Quantization,
    Field(discriminator="kind"),
]
