"""What must hold for an EAGLE-3 head, alone and against its target, before weights are read. Pure.

Borrow rules: embed_tokens may come from the target where hidden size and vocabulary are the same;
lm_head only if the draft also proposes from the full vocabulary.
"""

from dataclasses import dataclass
from typing import Any, Literal

from specserve.checkpoint.architecture import Dimensions, architecture_name, text_config
from specserve.checkpoint.aux_layers import AuxLayers, aux_layer_problems
from specserve.checkpoint.computation import computation_problems
from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.quantization import draft_problems, stored_quantization
from specserve.checkpoint.tensors import ExpectedTensors, compare, draft_tensors, layout
from specserve.checkpoint.vocabulary import vocabulary_problems
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.rule_ids import RuleId

DRAFT_KEY = "speculation.draft.path"
EAGLE3_ARCHITECTURES = ("LlamaForCausalLMEagle3", "Eagle3LlamaForCausalLM")
Borrowed = Literal["embed_tokens", "lm_head"]


@dataclass(frozen=True, slots=True, kw_only=True)
class DraftShape:
    """An EAGLE-3 head's dimensions, and what it says about its target."""

    size: Dimensions
    draft_vocab_size: int
    target_hidden_size: int


def draft_shape(draft: CheckpointFacts, size: Dimensions) -> DraftShape:
    """What config.json says beyond a decoder's dimensions; absent means "as the head itself"."""
    inner = text_config(draft.config)
    return DraftShape(
        size=size,
        draft_vocab_size=_integer(inner, "draft_vocab_size", size.vocab_size),
        target_hidden_size=_integer(inner, "target_hidden_size", size.hidden_size),
    )


def method_problems(draft: CheckpointFacts, target: CheckpointFacts) -> list[Problem]:
    """Whether the draft is an EAGLE-3 head at all; if not, no other rule makes sense.

    The published heads don't agree on a name, so a name alone refuses nothing where the tensors
    show the layout, or the config has the field of its own that such heads have.
    """
    name = architecture_name(draft.config)
    if draft.sha256 == target.sha256:
        found = f"the target itself ({name})"
    elif name in EAGLE3_ARCHITECTURES or _has_layout(draft):
        return []
    else:
        found = f"architecture {name}"
    return [
        Problem(
            rule=RuleId.NOT_AN_EAGLE3_HEAD,
            key=DRAFT_KEY,
            value=draft.path,
            expected="an EAGLE-3 head, because speculation.kind=eagle3 "
            f"({' or '.join(EAGLE3_ARCHITECTURES)}, tensors fc.weight and midlayer.*), "
            f"found {found}",
            fix=f"set {DRAFT_KEY} to an EAGLE-3 head made for this target, "
            "or speculation=off policy=off",
        )
    ]


def draft_rules(
    config: RunConfig, draft: CheckpointFacts, shape: DraftShape, target: Dimensions, aux: AuxLayers
) -> list[Problem]:
    """Every problem of an EAGLE-3 head whose dimensions are sound, context aside."""
    problems = [
        # Of a head for a target of another size, layers and vocabulary say nothing about this one.
        *(_size_problems(draft, shape, target) or _pair_problems(draft, shape, target, aux)),
        *draft_problems(config.quantization, stored_quantization(draft.config), shape.size),
    ]
    if config.engine.kind == "torch":
        problems += computation_problems(draft.config, key=DRAFT_KEY, path=draft.path)
    # Against a target of another size every tensor would be wrong: one problem says it better.
    return problems or _tensor_problems(draft, shape, target)


def borrowed_tensors(
    draft: CheckpointFacts, shape: DraftShape, target: Dimensions
) -> tuple[Borrowed, ...]:
    """What comes from the target because the head doesn't store it.

    Of a head without known tensors the usual is assumed: the embedding, and no more.
    """
    embedding, lm_head = _may_borrow(shape, target)
    stored = {"lm_head.weight"} if draft.tensors is None else set(draft.tensors)
    borrowed: list[Borrowed] = []
    if embedding and "embed_tokens.weight" not in stored:
        borrowed.append("embed_tokens")
    if lm_head and "lm_head.weight" not in stored:
        borrowed.append("lm_head")
    return tuple(borrowed)


def expected_tensors(
    draft: CheckpointFacts, shape: DraftShape, target: Dimensions
) -> ExpectedTensors:
    """The head's tensors; as many aux layers as fc.weight takes, three where it isn't known."""
    embedding, lm_head = _may_borrow(shape, target)
    fc_inputs = _fc_inputs(draft)
    return draft_tensors(
        layout(draft.config),
        shape.size,
        draft_vocab_size=shape.draft_vocab_size,
        target_hidden_size=target.hidden_size,
        num_aux=fc_inputs // target.hidden_size if fc_inputs else 3,
        can_borrow_embedding=embedding,
        can_borrow_lm_head=lm_head,
    )


def _may_borrow(shape: DraftShape, target: Dimensions) -> tuple[bool, bool]:
    size = shape.size
    embedding = (size.hidden_size, size.vocab_size) == (target.hidden_size, target.vocab_size)
    full = shape.draft_vocab_size == target.vocab_size
    # A head that ties lm_head to its embedding doesn't mean the target's lm_head.
    return embedding, embedding and full and not size.tie_word_embeddings


def _pair_problems(
    draft: CheckpointFacts, shape: DraftShape, target: Dimensions, aux: AuxLayers
) -> list[Problem]:
    return [
        *aux_layer_problems(
            aux, target.num_layers, target.hidden_size, _fc_inputs(draft), draft_path=draft.path
        ),
        *vocabulary_problems(
            draft, draft_vocab_size=shape.draft_vocab_size, vocab_size=target.vocab_size
        ),
    ]


def _size_problems(draft: CheckpointFacts, shape: DraftShape, target: Dimensions) -> list[Problem]:
    checks = [
        ("num_hidden_layers", shape.size.num_layers, 1, "one layer (midlayer)"),
        (
            "target_hidden_size",
            shape.target_hidden_size,
            target.hidden_size,
            "the target's hidden_size",
        ),
        ("vocab_size", shape.size.vocab_size, target.vocab_size, "the target's vocab_size"),
    ]
    return [
        Problem(
            rule=RuleId.HEAD_OF_ANOTHER_TARGET,
            key=DRAFT_KEY,
            value=draft.path,
            expected=f"{name} {wanted}, {meaning}; the head's config.json says {found}",
            fix=f"set {DRAFT_KEY} to a head that was trained for this target",
        )
        for name, found, wanted, meaning in checks
        if found != wanted
    ]


def _tensor_problems(
    draft: CheckpointFacts, shape: DraftShape, target: Dimensions
) -> list[Problem]:
    if draft.tensors is None:
        return []
    difference = compare(expected_tensors(draft, shape, target), draft.tensors)
    if not difference:
        return []
    fix = "export the head again in the published layout, whole"
    if _renamed(difference.missing, difference.unexpected):
        fix = "rename the tensors layers.0.* to midlayer.* in the head's safetensors file"
    elif "lm_head.weight" in difference.missing:
        fix += (
            f" (lm_head is borrowed from the target for the full vocabulary only; this head "
            f"proposes from {shape.draft_vocab_size} of {target.vocab_size} ids)"
        )
    return [
        Problem(
            rule=RuleId.DRAFT_TENSORS,
            key=DRAFT_KEY,
            value=draft.path,
            expected=f"exactly the tensors of an EAGLE-3 head; {difference}",
            fix=fix,
        )
    ]


def _renamed(missing: tuple[str, ...], unexpected: tuple[str, ...]) -> bool:
    return any(name.replace("layers.0.", "midlayer.", 1) in missing for name in unexpected)


def _has_layout(draft: CheckpointFacts) -> bool:
    if draft.tensors is None:
        return "draft_vocab_size" in draft.config
    return {"fc.weight", "midlayer.hidden_norm.weight"} <= set(draft.tensors)


def _fc_inputs(draft: CheckpointFacts) -> int | None:
    fc = (draft.tensors or {}).get("fc.weight")
    return fc.shape[1] if fc and len(fc.shape) == 2 else None


def _integer(config: dict[str, Any], name: str, default: int) -> int:
    value = config.get(name)
    return value if type(value) is int and value > 0 else default
