"""Group `parallel`: GPUs and nodes."""

from pydantic import Field

from specserve.config.strict import StrictModel


class ParallelConfig(StrictModel):
    """How the target is spread."""

    tensor_parallel: int = Field(ge=1, description="GPUs that share each layer")
    num_nodes: int = Field(ge=1, description="machines")
