"""Drafts other than an EAGLE-3 head, for engine=sglang: checked against the target, and planned.

A checkpoint tells by its architecture's name what it was made for. A name that says another method
than `speculation.kind` is refused: nothing is guessed from paths, and no method is exchanged. (A09)
"""

from collections.abc import Iterator
from typing import Literal

from specserve.calibration.table import Calibration
from specserve.checkpoint.architecture import (
    Dimensions,
    architecture_name,
    read_dimensions,
    text_config,
)
from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.quantization import draft_scheme
from specserve.checkpoint.rules import CheckedPair
from specserve.config.run import RunConfig
from specserve.config.speculation import (
    DflashSpeculation,
    EagleSpeculation,
    MtpSpeculation,
    StandaloneSpeculation,
)
from specserve.errors import ConfigError, Problem
from specserve.plan.notes import Notes
from specserve.plan.speculation import choose_depths, choose_num_draft_tokens, while_off
from specserve.plan.values import DraftPlan, SpeculationPlan, TargetPlan
from specserve.rule_ids import RuleId

Method = Literal["eagle3", "eagle", "mtp", "dflash", "standalone"]
DraftModelSpeculation = (
    EagleSpeculation | MtpSpeculation | StandaloneSpeculation | DflashSpeculation
)

KEY = "speculation.draft.path"
# In the order in which they are looked for: every name of EAGLE-3 also holds EAGLE's.
_SIGNS: tuple[tuple[str, Method], ...] = (
    ("eagle3", "eagle3"),
    ("eagle", "eagle"),
    ("dflash", "dflash"),
    ("nextn", "mtp"),
    ("mtp", "mtp"),
    ("assistant", "mtp"),
)
_OPTION = {"eagle3": "eagle3_topk1", "eagle": "eagle_topk1"}
# How the published configs name the number of draft layers that they bring.
_BUNDLED_LAYERS = ("num_nextn_predict_layers", "mtp_num_hidden_layers", "num_mtp_layers")
_USUAL_BLOCK = 16


def method_of(draft: CheckpointFacts) -> Method:
    """What a checkpoint was made for, by its architecture's name; a plain language model is alone.

    Some published EAGLE heads bear a plain model's name: they have a fusion layer, or a vocabulary
    of their own.
    """
    name = (architecture_name(draft.config) or "").lower()
    named = next((method for sign, method in _SIGNS if sign in name), None)
    if named is not None:
        return named
    if "draft_vocab_size" in draft.config:
        return "eagle3"
    return "eagle" if "fc.weight" in (draft.tensors or {}) else "standalone"


def bundled_layers(target: CheckpointFacts) -> int:
    """Draft layers that the target's config says are in its own checkpoint."""
    inner = text_config(target.config)
    counts = [inner.get(name) for name in _BUNDLED_LAYERS]
    return max((count for count in counts if type(count) is int), default=0)


def plan_drafter(
    config: RunConfig,
    draft: CheckpointFacts | None,
    pair: CheckedPair,
    target: TargetPlan,
    calibration: Calibration | None,
    notes: Notes,
    *,
    has_graphs: bool,
) -> SpeculationPlan | None:
    """The plan of a draft model that is no EAGLE-3 head; None for anything else.

    `draft` is what lies at `speculation.draft.path`; without such a path the target brings the
    draft layers itself.
    """
    asked = config.speculation
    if not isinstance(asked, DraftModelSpeculation):
        return None
    draft = draft if asked.draft.path else None
    notes.refuse(_method_problems(asked, draft, pair.target))
    own = pair.target if draft is None else draft
    try:
        size = read_dimensions(own.config, key=KEY, path=own.path)
    except ConfigError as error:
        notes.refuse(error.problems)
        return None
    notes.refuse(_vocabulary_problems(asked, own, size, pair.size))
    depths: tuple[int, ...]
    if isinstance(asked, DflashSpeculation):
        num_steps, depths, topk = 1, (1,), 1
        num_draft_tokens = _block(asked, own, notes)
    else:
        num_steps, topk = asked.num_steps, asked.topk
        depths = choose_depths(config, num_steps, calibration, has_graphs=has_graphs)
        num_draft_tokens = choose_num_draft_tokens(asked, notes)
    return SpeculationPlan(
        num_steps=num_steps,
        depths=depths,
        topk=topk,
        num_draft_tokens=num_draft_tokens,
        while_off=while_off(config),
        draft=_plan_draft(config, draft, own, size, target, notes),
    )


def _plan_draft(
    config: RunConfig,
    draft: CheckpointFacts | None,
    own: CheckpointFacts,
    size: Dimensions,
    target: TargetPlan,
    notes: Notes,
) -> DraftPlan:
    scheme = draft_scheme(config.quantization) if draft else "none"
    if draft is None:
        notes.adjust(KEY, None, own.path, "the draft layers are in the target's checkpoint")
    if config.quantization.draft == "inherit" and draft:
        notes.adjust("quantization.draft", "inherit", scheme, "the target's scheme")
    return DraftPlan(
        path=own.path,
        config=own.config,
        dtype=target.dtype,
        quantization=scheme,
        quantization_group_size=None,
        aux_layer_inputs=(),
        draft_vocab_size=size.vocab_size,
        num_kv_heads=1 if size.mla else size.num_kv_heads,
        head_dim=size.kv_width if size.mla else size.head_dim,
        borrowed=(),
    )


def _method_problems(
    asked: DraftModelSpeculation, draft: CheckpointFacts | None, target: CheckpointFacts
) -> Iterator[Problem]:
    if draft is None:
        yield from _unbundled(target)
        return
    found = method_of(draft)
    if draft.sha256 == target.sha256:
        if not (isinstance(asked, MtpSpeculation) and bundled_layers(target)):
            yield _is_the_target(asked, draft, target)
    elif found != asked.kind:
        yield Problem(
            rule=RuleId.DRAFT_OF_ANOTHER_METHOD,
            key="speculation.kind",
            value=asked.kind,
            expected=f"{found}, which the draft at {draft.path} was made for "
            f"(architecture {architecture_name(draft.config)})",
            fix=f"choose speculation={_OPTION.get(found, found)}, or set {KEY} to a draft for "
            f"{asked.kind}",
        )


def _unbundled(target: CheckpointFacts) -> Iterator[Problem]:
    if bundled_layers(target):
        return
    yield Problem(
        rule=RuleId.NO_BUNDLED_LAYERS,
        key=KEY,
        value=None,
        expected=f"a checkpoint of draft layers: the config.json of {target.path} names none that "
        f"it brings itself ({', '.join(_BUNDLED_LAYERS)})",
        fix=f"set {KEY}=FOLDER, or choose speculation=off policy=off",
    )


def _is_the_target(
    asked: DraftModelSpeculation, draft: CheckpointFacts, target: CheckpointFacts
) -> Problem:
    fix = f"set {KEY} to a draft for {asked.kind}"
    if bundled_layers(target):
        fix = f"choose speculation=mtp, or {fix}"
    return Problem(
        rule=RuleId.DRAFT_OF_ANOTHER_METHOD,
        key=KEY,
        value=draft.path,
        expected="a draft, found the target itself: it would be loaded twice and propose what it "
        "verifies",
        fix=fix,
    )


def _vocabulary_problems(
    asked: DraftModelSpeculation, draft: CheckpointFacts, size: Dimensions, target: Dimensions
) -> Iterator[Problem]:
    """Proposals are token ids of the target."""
    if size.vocab_size != target.vocab_size:
        yield Problem(
            rule=RuleId.DRAFT_OF_ANOTHER_VOCABULARY,
            key=KEY,
            value=draft.path,
            expected=f"a draft with the target's {target.vocab_size} token ids, found "
            f"{size.vocab_size}",
            fix=f"set {KEY} to a {asked.kind} draft of the target's family",
        )


def _block(asked: DflashSpeculation, draft: CheckpointFacts, notes: Notes) -> int:
    if asked.num_draft_tokens != "auto":
        return asked.num_draft_tokens
    section = draft.config.get("dflash_config")
    for place in (section if isinstance(section, dict) else {}, draft.config):
        block = place.get("block_size")
        if type(block) is int and block > 1:
            notes.adjust("speculation.num_draft_tokens", "auto", block, "the draft's block_size")
            return block
    reason = "the draft's config.json names no block_size: SGLang's own default"
    notes.adjust("speculation.num_draft_tokens", "auto", _USUAL_BLOCK, reason)
    return _USUAL_BLOCK
