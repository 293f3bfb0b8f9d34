"""Plans for engine=sglang on recorded facts, one for each drafter, and SGLang's own arguments."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any

from specserve.checkpoint.header import CheckpointFacts
from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.facts import Facts, Gpu, load_facts
from specserve.plan import Plan, SglangPlan, make_plan

DATA = Path(__file__).parent.parent / "data"
LLAMA = ("model=llama31_8b", "model.context_length=2048", "engine=sglang")
KIMI = ("+experiment=kimi_k25_int4_topk1_v2",)


@dataclass(frozen=True, slots=True, kw_only=True)
class Case:
    """Overrides, and what their checkpoints' config.json say otherwise than the recorded ones."""

    overrides: tuple[str, ...]
    target: dict[str, Any] = field(default_factory=dict)
    draft: dict[str, Any] = field(default_factory=dict)


EAGLE3 = {"architectures": ["LlamaForCausalLMEagle3"]}
PLAIN_DRAFT = {"architectures": ["LlamaForCausalLM"], "draft_vocab_size": None}
STATIC = ("policy=always", "speculation.draft.path=/draft")
CASES = {
    "off": Case(overrides=LLAMA),
    "eagle3": Case(overrides=("+experiment=topk1_v2", *LLAMA), draft=EAGLE3),
    "eagle3_always": Case(
        overrides=("+experiment=topk1_v2", "policy=always", *LLAMA), draft=EAGLE3
    ),
    "eagle3_tree": Case(overrides=("+experiment=topk4_v1", *LLAMA), draft=EAGLE3),
    "eagle3_cpu": Case(
        overrides=("+experiment=topk1_v2", "scheduler=sync", "engine.device=cpu", *LLAMA),
        draft=EAGLE3,
    ),
    "eagle": Case(
        overrides=("speculation=eagle_topk1", *STATIC, *LLAMA),
        draft={"architectures": ["LlamaForCausalLMEagle"], "draft_vocab_size": None},
    ),
    "mtp": Case(
        overrides=("speculation=mtp", "policy=batch_threshold", *LLAMA),
        target={"num_nextn_predict_layers": 1},
    ),
    "mtp_alone": Case(
        overrides=("speculation=mtp", *STATIC, *LLAMA),
        draft={"architectures": ["DeepseekV3ForCausalLMNextN"]},
    ),
    "standalone": Case(overrides=("speculation=standalone", *STATIC, *LLAMA), draft=PLAIN_DRAFT),
    "ngram": Case(overrides=("speculation=ngram", "policy=always", *LLAMA)),
    "dflash": Case(
        overrides=("speculation=dflash", *STATIC, *LLAMA),
        draft={"architectures": ["DFlashDraftModel"], "dflash_config": {"block_size": 12}},
    ),
    "fp8": Case(
        overrides=(
            "+experiment=topk1_v2",
            "quantization=fp8",
            "quantization.draft=inherit",
            *LLAMA,
        ),
        draft=EAGLE3,
    ),
    "tuned": Case(
        overrides=(
            *("engine.memory_fraction=0.8", "engine.kv_cache_dtype=fp8_e4m3"),
            *("engine.page_size=16", "scheduler=sync", "cuda_graph=off"),
            *("model.trust_remote_code=true", "engine.extra_args={schedule_policy: lpm}"),
            *LLAMA,
        )
    ),
    "kimi": Case(overrides=KIMI),
}


def facts_of(case: Case) -> Facts:
    """The recorded facts that fit, changed as the case says."""
    kimi = case.overrides[0] == KIMI[0]
    facts = load_facts(DATA / "facts" / ("kimi_k25.json" if kimi else "h200.json"))
    return facts.model_copy(
        update={
            "target": _changed(facts.target, case.target),
            "draft": _changed(facts.draft, case.draft),
        }
    )


def plan_of(
    name: str,
    *overrides: str,
    target: Mapping[str, Any] = MappingProxyType({}),
    draft: Mapping[str, Any] = MappingProxyType({}),
) -> Plan:
    """The plan of a case, with further overrides, and further changes of its checkpoints."""
    case = CASES[name]
    return plan_case(
        Case(
            overrides=(*case.overrides, *overrides),
            target={**case.target, **target},
            draft={**case.draft, **draft},
        )
    )


def plan_case(case: Case) -> Plan:
    return make_plan(_run(case.overrides), facts_of(case))


def sglang_part(plan: Plan) -> SglangPlan:
    assert plan.sglang is not None
    return plan.sglang


def with_gpu(facts: Facts, name: str, capability: str) -> Facts:
    """As many GPUs as before, of another kind."""
    gpu = Gpu(name=name, memory_bytes=2**38, compute_capability=capability)
    machine = facts.machine.model_copy(update={"gpus": (gpu,) * len(facts.machine.gpus)})
    return facts.model_copy(update={"machine": machine})


@cache
def known_arguments() -> Sequence[dict[str, Any]]:
    """SGLang's own arguments, by scripts/sglang_arguments.py."""
    entries: list[dict[str, Any]] = json.loads((DATA / "sglang/arguments.json").read_text())
    return entries


@cache
def evidence() -> dict[tuple[str, str], tuple[str, ...]]:
    """In which releases each text of the table stands, by the same script."""
    entries = json.loads((DATA / "sglang/evidence.json").read_text())
    return {(e["file"], e["text"]): tuple(e["releases"]) for e in entries}


@cache
def _run(overrides: tuple[str, ...]) -> RunConfig:
    return load_run(list(overrides)).config


def _changed(checkpoint: CheckpointFacts | None, changes: dict[str, Any]) -> CheckpointFacts | None:
    """None in `changes` takes a field away."""
    if checkpoint is None:
        return None
    config = {k: v for k, v in {**checkpoint.config, **changes}.items() if v is not None}
    return checkpoint.model_copy(update={"config": config})
