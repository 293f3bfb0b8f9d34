"""Group `speculation`: what is drafted."""

from typing import Annotated, Literal

from pydantic import Field

from specserve.config.strict import Auto, StrictModel

AuxLayerConvention = Literal["output", "input"]
LayerId = Annotated[int, Field(ge=0)]


class NoSpeculation(StrictModel):
    """Plain decoding; no draft is loaded."""

    kind: Literal["off"]


class DraftConfig(StrictModel):
    """The EAGLE-3 head."""

    path: str = Field(min_length=1, description="folder of the draft checkpoint, or bundled:NAME")
    aux_layer_ids: Annotated[list[LayerId], Field(min_length=1)] | Auto = Field(
        description="target layers whose hidden states feed the draft; auto: the draft's config, "
        "else 2, n/2, n-3 with a warning"
    )
    aux_layer_convention: AuxLayerConvention = Field(
        description="output: id X is what layer X puts out; input: what layer X takes in"
    )


class Eagle3Speculation(StrictModel):
    """EAGLE-3 (Li et al., 2025, arXiv:2503.01840): a one-layer head on fused target features."""

    kind: Literal["eagle3"]
    draft: DraftConfig
    num_steps: int = Field(ge=1, le=16, description="draft forward passes per round (depth)")
    topk: int = Field(ge=1, le=16, description="branches per draft step; 1 is a chain")
    num_draft_tokens: Annotated[int, Field(ge=2)] | Auto = Field(
        description="tokens verified per request and round, root included; "
        "auto: num_steps + 1 for a chain, 1 + num_steps * topk for a tree"
    )


SpeculationConfig = Annotated[NoSpeculation | Eagle3Speculation, Field(discriminator="kind")]
