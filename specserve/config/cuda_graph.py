"""Group `cuda_graph`: which steps are captured as CUDA graphs."""

from typing import Literal

from specserve.config.strict import Auto, Count, StrictModel


class CudaGraphConfig(StrictModel):
    """`batch_sizes` in requests; `auto` covers every admitted batch; on a CPU none is captured."""

    kind: Literal["auto", "off"]
    batch_sizes: list[Count] | Auto
