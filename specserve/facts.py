"""What was measured, once, before planning. `Facts` is a value: CI plans from a recorded one."""

from specserve.checkpoint.header import CheckpointFacts
from specserve.config.strict import StrictModel


class Gpu(StrictModel):
    """One visible GPU."""

    name: str
    memory_bytes: int
    compute_capability: str


class Machine(StrictModel):
    """The machine that the run is planned for."""

    cpu_count: int
    memory_bytes: int
    gpus: tuple[Gpu, ...]


class Facts(StrictModel):
    """Machine, versions (of distributions, by name) and both checkpoints.

    A checkpoint that is not on this machine is None: rules that need it are then not applied,
    and whoever serves must refuse.
    """

    machine: Machine
    versions: dict[str, str]
    target: CheckpointFacts | None
    draft: CheckpointFacts | None
