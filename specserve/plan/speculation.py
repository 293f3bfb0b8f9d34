"""The draft's part of the plan: the deepest round, and the head as it will be loaded."""

from specserve.calibration.table import Calibration
from specserve.checkpoint.aux_layers import aux_layer_doubt
from specserve.checkpoint.draft_rules import borrowed_tensors
from specserve.checkpoint.quantization import draft_group_size, draft_scheme
from specserve.checkpoint.rules import CheckedPair, Draft
from specserve.config.policy import SwitchingPolicy, WhileOff
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation, SteppedSpeculation
from specserve.plan.notes import Notes
from specserve.plan.values import DraftPlan, SpeculationPlan, TargetPlan
from specserve.policy.reach import reachable_depths


def plan_speculation(
    config: RunConfig,
    pair: CheckedPair,
    target: TargetPlan,
    calibration: Calibration | None,
    notes: Notes,
    *,
    has_graphs: bool,
) -> SpeculationPlan | None:
    """What a policy can choose at most; None without speculation."""
    if pair.draft is None or not isinstance(config.speculation, Eagle3Speculation):
        return None
    asked = config.speculation
    return SpeculationPlan(
        num_steps=asked.num_steps,
        depths=choose_depths(config, asked.num_steps, calibration, has_graphs=has_graphs),
        topk=asked.topk,
        num_draft_tokens=choose_num_draft_tokens(asked, notes),
        while_off=while_off(config),
        draft=_plan_draft(config, asked, pair.draft, pair, target, notes),
    )


def choose_depths(
    config: RunConfig, num_steps: int, calibration: Calibration | None, *, has_graphs: bool
) -> tuple[int, ...]:
    """Every depth up to the deepest; where each needs CUDA graphs, what the policy can choose.

    The deepest is always built: it is what a pin to "on" and the self-test ask for.
    """
    if not has_graphs:
        return tuple(range(1, num_steps + 1))
    return tuple(sorted({num_steps, *reachable_depths(config.policy, num_steps, calibration)}))


def choose_num_draft_tokens(asked: SteppedSpeculation, notes: Notes) -> int:
    """`auto` verifies the whole chain, or of a tree as many nodes as num_steps chains of topk.

    A tree holds topk + (num_steps - 1) * topk^2 proposals, which is never less.
    """
    if asked.num_draft_tokens != "auto":
        return asked.num_draft_tokens
    effective = 1 + asked.num_steps * asked.topk
    formula = "num_steps + 1 (a chain)" if asked.topk == 1 else "1 + num_steps * topk (a tree)"
    notes.adjust("speculation.num_draft_tokens", "auto", effective, formula)
    return effective


def while_off(config: RunConfig) -> WhileOff:
    """What the policy asks of the draft's state while off."""
    if isinstance(config.policy, SwitchingPolicy):
        return config.policy.while_off
    return "skip"  # never switches, so nothing is worth keeping up


def _plan_draft(
    config: RunConfig,
    asked: Eagle3Speculation,
    draft: Draft,
    pair: CheckedPair,
    target: TargetPlan,
    notes: Notes,
) -> DraftPlan:
    scheme = draft_scheme(config.quantization)
    if config.quantization.draft == "inherit":
        notes.adjust("quantization.draft", "inherit", scheme, "the target's scheme")
    _note_aux_layers(asked, draft, notes)
    return DraftPlan(
        path=draft.facts.path,
        config=draft.facts.config,
        dtype=target.dtype,
        quantization=scheme,
        quantization_group_size=draft_group_size(config.quantization) if scheme == "int4" else None,
        aux_layer_inputs=draft.aux.inputs,
        draft_vocab_size=draft.shape.draft_vocab_size,
        num_kv_heads=draft.shape.size.num_kv_heads,
        head_dim=draft.shape.size.head_dim,
        borrowed=borrowed_tensors(draft.facts, draft.shape, pair.size),
    )


def _note_aux_layers(asked: Eagle3Speculation, draft: Draft, notes: Notes) -> None:
    doubt = aux_layer_doubt(draft.aux)
    if doubt:
        notes.warn(doubt)
    if asked.draft.aux_layer_ids == "auto":
        sources = {
            "config": "the configuration",
            "draft": "the draft's config.json",
            "guess": "guessed as 2, n/2, n-3: the draft's config.json names none",
        }
        notes.adjust(
            "speculation.draft.aux_layer_ids",
            "auto",
            list(draft.aux.ids),
            f"{sources[draft.aux.source]}; {draft.aux.convention} convention",
        )
