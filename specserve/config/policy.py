"""Group `policy`: when to speculate, and how deep."""

from typing import Annotated, Literal

from pydantic import Field

from specserve.config.strict import StrictModel

WhileOff = Literal["warm", "skip", "refill"]


class OffPolicy(StrictModel):
    """Never speculate. A draft, if any, is loaded and stays unused until the policy changes."""

    kind: Literal["off"]


class AlwaysPolicy(StrictModel):
    """Speculate in every round, at the configured depth."""

    kind: Literal["always"]


class BatchThresholdPolicy(StrictModel):
    """Speculate while few requests decode: N running decodes still do, N+1 do not."""

    kind: Literal["batch_threshold"]
    disable_above: int = Field(ge=1, description="N: with N+1 running decodes speculation stops")
    resume_at: int = Field(
        ge=0, description="M: after going off, speculation returns at M or fewer"
    )
    min_dwell_rounds: int = Field(
        ge=0, description="rounds that a mode lasts at least, the first one included"
    )
    while_off: WhileOff = Field(
        description=(
            "draft state while off: warm keeps it up (one draft pass a step), skip drops it "
            "(free; acceptance is poor after resuming), refill makes it good on resuming"
        )
    )


class DepthStep(StrictModel):
    """A line of a table of depths: with at most `up_to` running decodes, `num_steps`."""

    up_to: int = Field(
        ge=1, description="running decodes up to which this line holds, inclusive", examples=[8]
    )
    num_steps: int = Field(
        ge=0, le=16, description="draft steps per round; 0 is plain decoding", examples=[1]
    )


# Lines in increasing order of `up_to`; above the last one the depth is 0.
DepthTable = list[DepthStep]


class Bounds(StrictModel):
    """Limits that hold in every round, whatever the policy would like."""

    schedule: DepthTable = Field(description="never deeper than this table; empty: no limit")
    disable_above: int | None = Field(
        ge=1, description="with more running decodes never speculate; null: no limit"
    )


class DepthSchedulePolicy(StrictModel):
    """The depth is looked up by the number of running decodes."""

    kind: Literal["depth_schedule"]
    schedule: DepthTable = Field(
        min_length=1, description="depth by running decodes; above the last line it is 0"
    )
    hysteresis: int = Field(
        ge=0,
        description="running decodes below a line's end at which its depth returns: "
        "disable_above minus resume_at of a batch_threshold",
    )
    min_dwell_rounds: int = Field(
        ge=0, description="rounds that a depth lasts at least, the first one included"
    )
    while_off: WhileOff


class AcceptancePolicy(StrictModel):
    """As deep as drafted tokens are still accepted often enough, by a moving average."""

    kind: Literal["acceptance"]
    min_acceptance: float = Field(
        gt=0, lt=1, description="share of rounds in which the deepest drafted token is accepted"
    )
    margin: float = Field(
        ge=0, lt=1, description="by how much a deeper depth must clear min_acceptance to be taken"
    )
    window_rounds: int = Field(ge=1, description="rounds after which an observation weighs half")
    explore_every_rounds: int = Field(
        ge=0, description="rounds between looks at a depth that is not in force; 0: never look"
    )
    bounds: Bounds
    min_dwell_rounds: int = Field(
        ge=0, description="rounds that a depth lasts at least, the first one included"
    )
    while_off: WhileOff


class CostModelPolicy(StrictModel):
    """The depth with the most expected tokens per second, by measured round times."""

    kind: Literal["cost_model"]
    calibration: str = Field(min_length=1, description="calibration file (JSON)")
    margin: float = Field(
        ge=0, lt=1, description="share by which another depth must be better to be taken"
    )
    max_inter_token_ms: float | None = Field(
        gt=0, description="mean time between a request's tokens that a depth may cost at most"
    )
    window_rounds: int = Field(ge=1, description="rounds after which an observation weighs half")
    explore_every_rounds: int = Field(
        ge=0, description="rounds between looks at a depth that is not in force; 0: never look"
    )
    bounds: Bounds
    min_dwell_rounds: int = Field(
        ge=0, description="rounds that a depth lasts at least, the first one included"
    )
    while_off: WhileOff


# Those that can switch speculation off and on again.
SwitchingPolicy = BatchThresholdPolicy | DepthSchedulePolicy | AcceptancePolicy | CostModelPolicy
PolicyConfig = Annotated[
    OffPolicy
    | AlwaysPolicy
    | BatchThresholdPolicy
    | DepthSchedulePolicy
    | AcceptancePolicy
    | CostModelPolicy,
    Field(discriminator="kind"),
]
