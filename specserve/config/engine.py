"""Group `engine`: who computes."""

from typing import Annotated, Literal

from pydantic import Field

from specserve.config.strict import Auto, Count, StrictModel

ExtraValue = str | int | float | bool | list[str | int | float]


class TorchEngineConfig(StrictModel):
    """The embedded engine: a laptop CPU or one GPU."""

    kind: Literal["torch"]
    device: Literal["auto", "cpu", "cuda"]
    num_threads: Count | Auto = Field(description="CPU threads; auto: all cores but one")


class SglangEngineConfig(StrictModel):
    """SGLang as it is installed."""

    kind: Literal["sglang"]
    device: Literal["cuda", "cpu"]
    memory_fraction: Annotated[float, Field(gt=0, lt=1)] | Auto = Field(
        description="share of GPU memory for weights and KV"
    )
    kv_cache_dtype: Literal["auto", "bfloat16", "fp8_e4m3", "fp8_e5m2"] = Field(
        description="type of the target's cached keys and values, and of the draft's; "
        "auto: the activation type"
    )
    page_size: Count | Auto = Field(description="tokens of one KV page; auto: the back-end's")
    allow_untested_version: bool = Field(
        description="start an SGLang release that specserve's table of versions does not have"
    )
    strict_effective: Literal["error", "warn"] = Field(
        description="a setting that SGLang reports otherwise than planned ends the run, or is told"
    )
    extra_args: dict[str, ExtraValue] = Field(
        description="server arguments that no other key sets, by SGLang's own names",
        examples=[{}],
    )


EngineConfig = Annotated[TorchEngineConfig | SglangEngineConfig, Field(discriminator="kind")]
