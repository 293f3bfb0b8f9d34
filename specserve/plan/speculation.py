"""The draft's part of the plan: the deepest round, and the head as it will be loaded."""

from typing import assert_never

from specserve.checkpoint.aux_layers import aux_layer_warning
from specserve.checkpoint.draft_rules import borrowed_tensors
from specserve.checkpoint.quantization import draft_group_size, draft_scheme
from specserve.checkpoint.rules import CheckedPair, Draft
from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy, OffPolicy, WhileOff
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.plan.notes import Notes
from specserve.plan.values import DraftPlan, SpeculationPlan, TargetPlan


def plan_speculation(
    config: RunConfig, pair: CheckedPair, target: TargetPlan, notes: Notes
) -> SpeculationPlan | None:
    """What a policy can choose at most; None without speculation."""
    if pair.draft is None or not isinstance(config.speculation, Eagle3Speculation):
        return None
    asked = config.speculation
    return SpeculationPlan(
        num_steps=asked.num_steps,
        topk=asked.topk,
        num_draft_tokens=choose_num_draft_tokens(asked, notes),
        while_off=_while_off(config),
        draft=_plan_draft(config, asked, pair.draft, pair, target, notes),
    )


def choose_num_draft_tokens(asked: Eagle3Speculation, notes: Notes) -> int:
    """`auto` verifies the whole chain, or of a tree as many nodes as num_steps chains of topk.

    A tree holds topk + (num_steps - 1) * topk^2 proposals, which is never less.
    """
    if asked.num_draft_tokens != "auto":
        return asked.num_draft_tokens
    effective = 1 + asked.num_steps * asked.topk
    formula = "num_steps + 1 (a chain)" if asked.topk == 1 else "1 + num_steps * topk (a tree)"
    notes.adjust("speculation.num_draft_tokens", "auto", effective, formula)
    return effective


def _while_off(config: RunConfig) -> WhileOff:
    match config.policy:
        case BatchThresholdPolicy():
            return config.policy.while_off
        case OffPolicy() | AlwaysPolicy():
            return "skip"  # never switches, so nothing is worth keeping up
        case _:
            assert_never(config.policy)


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
    warning = aux_layer_warning(draft.aux)
    if warning:
        notes.warn(warning)
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
