"""How SGLang reads a draft, where that differs from what the plan says: refused."""

from collections.abc import Iterator
from typing import Any

from specserve.checkpoint.architecture import architecture_name
from specserve.checkpoint.aux_layers import usual_inputs
from specserve.errors import Problem
from specserve.plan import Plan, SglangPlan
from specserve.rule_ids import RuleId
from specserve.sglang_engine.args import is_steered
from specserve.sglang_engine.table import (
    EAGLE3_HEADS,
    FROZEN_KV_DRAFTS,
    INPUT_IDS_TARGETS,
    MULTI_LAYER_TARGETS,
)
from specserve.sglang_engine.versions import Release

_FIELD = "eagle_aux_hidden_state_layer_ids"


def steering(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """Pairs whose worker has no adaptive states: SGLang would draft at one depth for ever."""
    if not is_steered(plan) or plan.speculation is None:
        return
    target = architecture_name(plan.target.config) or ""
    draft = architecture_name(plan.speculation.draft.config) or ""
    family = sglang.speculation.kind in ("eagle", "mtp")
    if family and target.startswith(MULTI_LAYER_TARGETS.at(release)):
        why = f"SGLang {release.table} drafts for {target} by multi-layer EAGLE"
    elif family and draft in FROZEN_KV_DRAFTS.at(release):
        why = f"SGLang drafts with {draft} on a frozen KV cache"
    else:
        return
    yield Problem(
        rule=RuleId.POLICY_NOT_STEERABLE,
        key="policy",
        value=plan.policy.kind,
        expected=f"always: {why}, whose depth cannot change while it runs",
        fix="choose policy=always",
    )


def head_class(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """SGLang takes the class of a draft by its name: a head by another name is not read as one."""
    if sglang.speculation.kind != "eagle3" or plan.speculation is None:
        return
    known = EAGLE3_HEADS.at(release)
    name = architecture_name(plan.speculation.draft.config)
    if name not in known:
        yield Problem(
            rule=RuleId.DRAFT_OF_ANOTHER_METHOD,
            key="speculation.draft.path",
            value=plan.speculation.draft.path,
            expected=f"a head whose config.json names one of the architectures "
            f"{_listed(sorted(known))}, found {name}, as which SGLang would load it",
            fix='set speculation.draft.path to a copy with "architectures": '
            '["LlamaForCausalLMEagle3"] in its config.json',
        )


def aux_layers(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """SGLang reads the ids from the draft's own config, in the convention of the target's class."""
    if sglang.speculation.kind != "eagle3" or plan.speculation is None:
        return
    draft = plan.speculation.draft
    ids = _stored_ids(draft.config)
    name = architecture_name(plan.target.config)
    as_inputs = ids and ids[0] != 1 and name in INPUT_IDS_TARGETS.at(release)
    effective: tuple[int, ...]
    if ids is None:
        effective, how = usual_inputs(plan.target.num_layers), "takes the usual ones: it reads none"
    elif as_inputs:
        effective, how = ids, f"reads {_ids(ids)} as inputs, as for all targets like {name}"
    else:
        effective, how = tuple(i + 1 for i in ids), f"reads {_ids(ids)} as outputs"
    if effective == draft.aux_layer_inputs:
        return
    convention = "input" if ids is None or as_inputs else "output"
    fix = (
        "set speculation.draft.aux_layer_ids=auto "
        f"speculation.draft.aux_layer_convention={convention}, or "
    )
    if ids is None and _FIELD in draft.config:
        fix = ""
    yield Problem(
        rule=RuleId.AUX_LAYERS_READ_OTHERWISE,
        key="speculation.draft.aux_layer_ids",
        value=list(draft.aux_layer_inputs),
        expected=f"{_ids(effective)} (input convention), which SGLang feeds the draft with: it "
        f"{how} from eagle_config in the draft's config.json",
        fix=f"{fix}set speculation.draft.path to a copy with other ids in that file",
    )


def _stored_ids(draft_config: dict[str, Any]) -> tuple[int, ...] | None:
    """The only place where SGLang looks for them; None where they are missing."""
    section = draft_config.get("eagle_config")
    ids = section.get(_FIELD) if isinstance(section, dict) else None
    return tuple(ids) if isinstance(ids, list) else None


def _listed(names: list[str]) -> str:
    return ", ".join(names)


def _ids(ids: tuple[int, ...]) -> str:
    return f"[{','.join(map(str, ids))}]"
