"""The calibration: round time by batch size and depth, acceptance by position, and their origin."""

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Literal, NamedTuple, Self

from pydantic import Field, model_validator
from pydantic_core import PydanticCustomError

from specserve.config.strict import StrictModel

FORMAT = "specserve-calibration-1"


class Provenance(StrictModel):
    """What the figures were measured on and with; whoever uses them elsewhere is told."""

    device: str = Field(description="GPU name, or the processor of a CPU")
    driver: str | None
    engine: Literal["torch", "sglang"]
    versions: dict[str, str] = Field(description="engine, torch, CUDA, specserve …")
    attention: str
    target: str
    target_hash: str
    draft: str
    draft_hash: str
    workload: str
    date: str = Field(description="ISO 8601")
    command: str


class DepthTimes(StrictModel):
    """Median seconds of a round of depth `num_steps`, one for each batch size; 0 is plain."""

    num_steps: int = Field(ge=0, le=16)
    round_seconds: tuple[float, ...]


class Fault(NamedTuple):
    """Why figures are no table: the place in the file, what was found there, what was expected."""

    place: str
    found: object
    expected: str


class Calibration(StrictModel):
    """A table over `batch_sizes` (running decodes, increasing) and depths (increasing, 0 first).

    `accepted_by_position[i]` of `verified` requests and rounds had their draft token i + 1
    accepted, at the deepest measured depth.
    """

    format: Literal["specserve-calibration-1"]
    provenance: Provenance
    topk: int = Field(ge=1)
    batch_sizes: tuple[int, ...]
    depths: tuple[DepthTimes, ...]
    verified: int = Field(ge=1)
    accepted_by_position: tuple[int, ...]

    @property
    def acceptance(self) -> tuple[float, ...]:
        """Chance that draft token i + 1 of a round is accepted; never grows with i."""
        return tuple(count / self.verified for count in self.accepted_by_position)

    @model_validator(mode="after")
    def _is_a_table(self) -> Self:
        """Every depth has a positive time for every batch size, and the axes are sorted."""
        faults = [*_axis_faults(self), *_time_faults(self), *_count_faults(self)]
        if faults:
            message = "; ".join(f"{f.place}={f.found}: expected {f.expected}" for f in faults)
            raise PydanticCustomError("no_table", "{message}", {"message": message, "all": faults})
        return self


def _axis_faults(table: Calibration) -> Iterator[Fault]:
    sizes, steps = table.batch_sizes, [depth.num_steps for depth in table.depths]
    if not sizes or sizes[0] < 1 or not _increases(sizes):
        yield Fault("batch_sizes", list(sizes), "increasing batch sizes, the first at least 1")
    if not steps or steps[0] != 0 or not _increases(steps):
        yield Fault("depths[].num_steps", steps, "increasing depths, the first 0 (plain decoding)")


def _time_faults(table: Calibration) -> Iterator[Fault]:
    for index, depth in enumerate(table.depths):
        place, seconds = f"depths[{index}].round_seconds", list(depth.round_seconds)
        if len(seconds) != len(table.batch_sizes):
            expected = f"{len(table.batch_sizes)} times, one for each batch size"
            yield Fault(place, seconds, expected)
        if any(value <= 0 for value in seconds):
            yield Fault(place, seconds, "times above 0")


def _count_faults(table: Calibration) -> Iterator[Fault]:
    counts = table.accepted_by_position
    deepest = max((depth.num_steps for depth in table.depths), default=0)
    if len(counts) != deepest:
        expected = f"{deepest} counts, one for each draft token of the deepest depth"
        yield Fault("accepted_by_position", list(counts), expected)
    bounded = [table.verified, *counts, 0]
    if any(after > before for before, after in pairwise(bounded)):
        expected = f"counts from verified={table.verified} down to 0 that never grow"
        yield Fault("accepted_by_position", list(counts), expected)


def _increases(values: Sequence[int]) -> bool:
    return all(before < after for before, after in pairwise(values))
