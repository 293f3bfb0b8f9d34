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
        ge=0, description="rounds that a mode lasts at least, once entered by a switch"
    )
    while_off: WhileOff = Field(
        description=(
            "draft state while off: warm keeps it up (one draft pass a step), skip drops it "
            "(free; acceptance is poor after resuming), refill makes it good on resuming"
        )
    )


PolicyConfig = Annotated[
    OffPolicy | AlwaysPolicy | BatchThresholdPolicy, Field(discriminator="kind")
]
