"""Group `engine`: who computes."""

from typing import Annotated, Literal

from pydantic import Field

from specserve.config.strict import Auto, Count, StrictModel


class TorchEngineConfig(StrictModel):
    """The embedded engine: a laptop CPU or one GPU."""

    kind: Literal["torch"]
    device: Literal["auto", "cpu", "cuda"]
    num_threads: Count | Auto = Field(description="CPU threads; auto: all cores but one")


class SglangEngineConfig(StrictModel):
    """SGLang as it is installed."""

    kind: Literal["sglang"]
    memory_fraction: Annotated[float, Field(gt=0, lt=1)] | Auto = Field(
        description="share of GPU memory for weights and KV"
    )


EngineConfig = Annotated[TorchEngineConfig | SglangEngineConfig, Field(discriminator="kind")]
