"""Group `speculation`: what is drafted."""

from typing import Annotated, Literal, assert_never

from pydantic import Field

from specserve.config.strict import Auto, Count, StrictModel

AuxLayerConvention = Literal["output", "input"]
LayerId = Annotated[int, Field(ge=0)]

NumSteps = Annotated[int, Field(ge=1, le=16, description="draft forward passes per round (depth)")]
TopK = Annotated[int, Field(ge=1, le=16, description="branches per draft step; 1 is a chain")]
NumDraftTokens = Annotated[
    Annotated[int, Field(ge=2)] | Auto,
    Field(
        description="tokens verified per request and round, root included; "
        "auto: num_steps + 1 for a chain, 1 + num_steps * topk for a tree"
    ),
]


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


class DraftCheckpoint(StrictModel):
    """A draft that needs no more than its checkpoint."""

    path: str = Field(min_length=1, description="folder of the draft checkpoint, or a hub id")


class BundledDraft(StrictModel):
    """Layers that the target's checkpoint brings, or a checkpoint that holds them alone."""

    path: Annotated[str, Field(min_length=1)] | None = Field(
        description="folder of the draft checkpoint, or a hub id; null: the target's own layers"
    )


class Eagle3Speculation(StrictModel):
    """EAGLE-3 (Li et al., 2025, arXiv:2503.01840): a one-layer head on fused target features."""

    kind: Literal["eagle3"]
    draft: DraftConfig
    num_steps: NumSteps
    topk: TopK
    num_draft_tokens: NumDraftTokens


class EagleSpeculation(StrictModel):
    """EAGLE and EAGLE-2 (Li et al., 2024, arXiv:2406.16858): a head on the last hidden state."""

    kind: Literal["eagle"]
    draft: DraftCheckpoint
    num_steps: NumSteps
    topk: TopK
    num_draft_tokens: NumDraftTokens


class MtpSpeculation(StrictModel):
    """Multi-token prediction (NextN): draft layers that were trained with the target."""

    kind: Literal["mtp"]
    draft: BundledDraft
    num_steps: NumSteps
    topk: TopK
    num_draft_tokens: NumDraftTokens


class StandaloneSpeculation(StrictModel):
    """A small language model of the target's vocabulary that drafts on its own."""

    kind: Literal["standalone"]
    draft: DraftCheckpoint
    num_steps: NumSteps
    topk: TopK
    num_draft_tokens: NumDraftTokens


class NgramSpeculation(StrictModel):
    """Continuations of what was generated before, looked up in a trie; there is no draft model."""

    kind: Literal["ngram"]
    num_draft_tokens: int = Field(ge=2, description="tokens verified per request and round")
    max_trie_depth: int = Field(ge=2, description="longest n-gram that is kept")
    min_breadth: Count = Field(description="fewest continuations of one node that are drafted")
    max_breadth: Count = Field(description="most continuations of one node that are drafted")
    match: Literal["recent", "frequent"] = Field(
        description="continuations in the order of their last use, or of their frequency"
    )
    capacity: Count = Field(description="nodes that the trie holds, in host memory")


class DflashSpeculation(StrictModel):
    """DFlash: a block-diffusion draft that proposes a whole block in one pass."""

    kind: Literal["dflash"]
    draft: DraftCheckpoint
    num_draft_tokens: Annotated[int, Field(ge=2)] | Auto = Field(
        description="tokens verified per request and round; auto: the draft's block_size"
    )


SpeculationConfig = Annotated[
    NoSpeculation
    | Eagle3Speculation
    | EagleSpeculation
    | MtpSpeculation
    | StandaloneSpeculation
    | NgramSpeculation
    | DflashSpeculation,
    Field(discriminator="kind"),
]
# Those that draft step by step, `num_steps` deep and `topk` wide.
SteppedSpeculation = Eagle3Speculation | EagleSpeculation | MtpSpeculation | StandaloneSpeculation


def draft_path(speculation: SpeculationConfig) -> str | None:
    """The draft's own checkpoint; None where nothing is drafted, or nothing beside the target."""
    match speculation:
        case NoSpeculation() | NgramSpeculation():
            return None
        case (
            Eagle3Speculation()
            | EagleSpeculation()
            | MtpSpeculation()
            | StandaloneSpeculation()
            | DflashSpeculation()
        ):
            return speculation.draft.path
        case _:
            assert_never(speculation)
