"""The fixed build phases, their records, and the runner that no step can leave half-done."""

from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Literal


class Phase(StrEnum):
    """The build order (design §5)."""

    ATTRIBUTES = "attributes"
    LOAD_TARGET = "load_target"
    LOAD_DRAFT = "load_draft"
    KV_CACHE = "kv_cache"
    ATTENTION_BACKEND = "attention_backend"
    CUDA_GRAPHS = "cuda_graphs"
    SELF_TEST = "self_test"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseRecord:
    """One line of the ledger. Memory in bytes; device memory is None without a GPU.

    `seconds` is 0.0 in a start record; the *_before fields are repeated in the closing record.
    """

    phase: Phase
    event: Literal["start", "done", "skipped", "failed"]
    rank: int
    time: str
    seconds: float
    host_bytes_before: int
    host_bytes_after: int | None
    device_bytes_before: int | None
    device_bytes_after: int | None
    details: dict[str, Any]
