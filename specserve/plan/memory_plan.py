"""The memory plan: what one device's memory is needed for, row by row, and how each is known."""

from collections.abc import Mapping
from typing import Literal

from specserve.config.strict import StrictModel

MemoryPart = Literal[
    "target_weights",
    "draft_weights",
    "kv",
    "draft_kv",
    "features",
    "graphs_plain",
    "graphs_verify",
    "graphs_draft",
    "workspace",
    "runtime",
    "mapped_files",
]
Knowledge = Literal["counted", "estimated", "measured"]

ALLOCATED: tuple[MemoryPart, ...] = (
    "target_weights",
    "draft_weights",
    "kv",
    "draft_kv",
    "features",
)


class MemoryRow(StrictModel):
    """Bytes on one device. `basis` says in words what they were counted or estimated from."""

    what: MemoryPart
    num_bytes: int
    known: Knowledge
    basis: str


class MemoryPlan(StrictModel):
    """Memory of each device, beforehand.

    The rows of `ALLOCATED` are what the build allocates: exact for engine=torch where the tensor
    headers are known. The others are taken besides. `device_bytes` is what a device has and
    `usable_bytes` what allocations may take of it, both None where no device is known;
    `fitting_tokens` are the tokens whose keys and values fit beside the weights.
    """

    device: str
    num_devices: int
    device_bytes: int | None
    usable_bytes: int | None
    kv_bytes_per_token: int
    draft_kv_bytes_per_token: int
    fitting_tokens: int | None
    rows: tuple[MemoryRow, ...]

    @classmethod
    def counted(cls, num_bytes: Mapping[MemoryPart, int]) -> "MemoryPlan":
        """Given figures on no device in particular, for whoever builds without planning."""
        rows = [
            MemoryRow(what=what, num_bytes=size, known="counted", basis="given")
            for what, size in num_bytes.items()
        ]
        return cls(
            device="any",
            num_devices=1,
            device_bytes=None,
            usable_bytes=None,
            kv_bytes_per_token=0,
            draft_kv_bytes_per_token=0,
            fitting_tokens=None,
            rows=tuple(rows),
        )

    def bytes_of(self, *parts: MemoryPart) -> int:
        """The sum of these rows; a part that has none takes nothing."""
        return sum(row.num_bytes for row in self.rows if row.what in parts)

    def replaced(self, what: MemoryPart, num_bytes: int) -> "MemoryPlan":
        """The same plan with another figure in one of its rows."""
        rows = tuple(
            row.model_copy(update={"num_bytes": num_bytes}) if row.what == what else row
            for row in self.rows
        )
        return self.model_copy(update={"rows": rows})

    @property
    def target_weight_bytes(self) -> int:
        """The target's weights."""
        return self.bytes_of("target_weights")

    @property
    def draft_weight_bytes(self) -> int:
        """The draft's own weights; what it borrows is the target's."""
        return self.bytes_of("draft_weights")

    @property
    def kv_bytes(self) -> int:
        """Keys and values of the target."""
        return self.bytes_of("kv")

    @property
    def draft_kv_bytes(self) -> int:
        """Keys and values of the draft."""
        return self.bytes_of("draft_kv")

    @property
    def feature_bytes(self) -> int:
        """Hidden states that the draft has not consumed yet."""
        return self.bytes_of("features")

    @property
    def total_bytes(self) -> int:
        """All that the build allocates."""
        return self.bytes_of(*ALLOCATED)

    @property
    def needed_bytes(self) -> int:
        """All that the device must have: mapped files aside, whose pages the system can drop."""
        return sum(row.num_bytes for row in self.rows if row.what != "mapped_files")
