"""The models' passes as rounds call them: computed as they are, or replayed from CUDA graphs."""

from dataclasses import dataclass
from typing import Protocol

import torch
from torch import Tensor

from specserve.plan import Plan, SpeculationPlan
from specserve.torch_engine.attention import PackedStep, Step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.draft import Draft
from specserve.torch_engine.graphs import GraphedPass, capture, pass_sizes
from specserve.torch_engine.group import make_depth
from specserve.torch_engine.target import Target, TargetOutput


class TargetPasses(Protocol):
    """What a round needs of the target; `Target` has it."""

    def __call__(self, tokens: Tensor, step: Step | PackedStep, cache: KVCache, /) -> TargetOutput:
        """As `Target.forward`."""
        ...

    def logits(self, hidden: Tensor, /) -> Tensor:
        """As `Target.logits`."""
        ...


class DraftPasses(Protocol):
    """What a round needs of the draft; `Draft` has it."""

    def __call__(
        self, tokens: Tensor, fused: Tensor, step: Step | PackedStep, cache: KVCache, /
    ) -> Tensor:
        """As `Draft.forward`."""
        ...

    def fuse(self, features: Tensor, /) -> Tensor:
        """As `Draft.fuse`."""
        ...

    def logits(self, hidden: Tensor, /) -> Tensor:
        """As `Draft.logits`."""
        ...

    def target_ids(self, draft_ids: Tensor, /) -> Tensor:
        """As `Draft.target_ids`."""
        ...


class GraphedTarget:
    """A target whose rounds replay graphs over one cache. Prompts are computed as they are."""

    def __init__(self, target: Target, passes: GraphedPass) -> None:
        self._passes = passes
        self.logits = target.logits

    def __call__(self, tokens: Tensor, step: Step | PackedStep, cache: KVCache, /) -> TargetOutput:
        """As `Target.forward`, for the cache that the graphs were captured over."""
        hidden, *features = self._passes((tokens,), step)
        return TargetOutput(hidden, features[0] if features else None)


class GraphedDraft:
    """A draft whose passes replay graphs over one cache."""

    def __init__(self, draft: Draft, passes: GraphedPass) -> None:
        self._passes = passes
        self.fuse = draft.fuse
        self.logits = draft.logits
        self.target_ids = draft.target_ids

    def __call__(
        self, tokens: Tensor, fused: Tensor, step: Step | PackedStep, cache: KVCache, /
    ) -> Tensor:
        """As `Draft.forward`, for the cache that the graphs were captured over."""
        return self._passes((tokens, fused), step)[0]


@dataclass(frozen=True, slots=True, kw_only=True)
class Passes:
    """Both models' passes, and how many graphs stand behind each mode of decoding."""

    target: TargetPasses
    draft: DraftPasses | None
    num_graphs: dict[str, int]


def computed_passes(target: Target, draft: Draft | None) -> Passes:
    """Without graphs."""
    return Passes(target=target, draft=draft, num_graphs={})


@torch.inference_mode()
def captured_passes(
    plan: Plan,
    target: Target,
    draft: Draft | None,
    target_cache: KVCache,
    draft_cache: KVCache | None,
) -> Passes:
    """Capture what every mode needs: the plain decode, and with a draft the verify and its passes.

    Captures write to scratch slots only.
    """
    plain = _capture_target(plan, target, target_cache, {1})
    if plan.speculation is None or draft is None or draft_cache is None:
        return Passes(
            target=GraphedTarget(target, plain),
            draft=None,
            num_graphs={"plain": len(plain.sizes)},
        )
    built = plan.speculation
    verify = _capture_target(plan, target, target_cache, verify_widths(built))
    drafting = _capture_draft(plan, draft, draft_cache, draft_widths(built))
    return Passes(
        target=GraphedTarget(target, plain.joined(verify)),
        draft=GraphedDraft(draft, drafting),
        num_graphs={
            "plain": len(plain.sizes),
            "verify": len(verify.sizes),
            "draft": len(drafting.sizes),
        },
    )


def verify_widths(built: SpeculationPlan) -> set[int]:
    """Queries of the verify passes: each depth has its own."""
    return {make_depth(built, num_steps).num_draft_tokens for num_steps in built.depths}


def draft_widths(built: SpeculationPlan) -> set[int]:
    """Queries of the draft's passes.

    The first pass of a round extends by 1 … num_steps + 1 entries, the others by topk.
    """
    return {*range(1, built.num_steps + 2), built.topk}


def _capture_target(
    plan: Plan, target: Target, cache: KVCache, num_queries: set[int]
) -> GraphedPass:
    def forward(inputs: tuple[Tensor, ...], step: Step | PackedStep) -> tuple[Tensor, ...]:
        output = target(inputs[0], step, cache)
        return output.hidden, *(() if output.features is None else (output.features,))

    tokens = torch.zeros((1, 1), dtype=torch.int64, device=cache.layers[0].device)
    sizes = pass_sizes(plan.cuda_graph_batch_sizes, num_queries, plan.scheduler.row_tokens)
    return capture(forward, (tokens,), cache, sizes)


def _capture_draft(plan: Plan, draft: Draft, cache: KVCache, num_queries: set[int]) -> GraphedPass:
    def forward(inputs: tuple[Tensor, ...], step: Step | PackedStep) -> tuple[Tensor, ...]:
        return (draft(inputs[0], inputs[1], step, cache),)

    keys = cache.layers[0]
    tokens = torch.zeros((1, 1), dtype=torch.int64, device=keys.device)
    width = draft.shape.block.hidden_size
    fused = torch.zeros((1, 1, width), dtype=keys.dtype, device=keys.device)
    sizes = pass_sizes(plan.cuda_graph_batch_sizes, num_queries, plan.scheduler.row_tokens)
    return capture(forward, (tokens, fused), cache, sizes)
