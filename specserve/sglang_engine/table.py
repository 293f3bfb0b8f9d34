"""What differs between SGLang's releases, or is the same in all, each with its evidence.

scripts/sglang_arguments.py looks the evidence up in the releases themselves (tests/data/sglang/
evidence.json), and a test holds this table against what it found.
"""

from typing import Any, Literal, TypeVar

from specserve.sglang_engine.versions import NEWEST, SUPPORTED, Evidence, Row, Span

T = TypeVar("T")

_SPECULATIVE_HOOK = "arg_groups/speculative_hook.py"
_OVERRIDES = "arg_groups/overrides.py"
_ADAPTIVE = "speculative/adaptive_runtime_state.py"
_MULTI_LAYER = '["enable_multi_layer_eagle"] = True'


def _always(meaning: str, value: T, *evidence: Evidence) -> Row[T]:
    return Row(meaning, (Span(since=SUPPORTED[0], until=NEWEST, value=value, evidence=evidence),))


TREE_WITH_OVERLAP: Row[bool] = _always(
    "a tree (topk above 1) may be drafted under the overlap scheduler: one worker (V2) drafts all",
    True,
    Evidence("speculative/spec_info.py", "always use the V2 worker"),
)
TREE_OVER_PAGES: Row[frozenset[str]] = _always(
    "attention back-ends that verify a tree in a KV cache with pages of more than one token",
    frozenset({"flashinfer", "fa3", "triton"}),
    Evidence(_SPECULATIVE_HOOK, '_PAGE_TREE_SPEC_BACKENDS = ("flashinfer", "fa3", "triton")'),
)
NGRAM_OVER_PAGES: Row[frozenset[str]] = _always(
    "the same for the trees of n-grams",
    frozenset({"flashinfer"}),
    Evidence(_SPECULATIVE_HOOK, "is only supported for the 'flashinfer' backend"),
)
OVERLAP_ON_A_CPU: Row[bool] = _always(
    "speculation on a CPU may run under the overlap scheduler",
    False,
    Evidence(_SPECULATIVE_HOOK, "def _disable_overlap_schedule_for_cpu("),
)
FP8_OF_FA3: Row[frozenset[str]] = _always(
    "8-bit KV types that the back-end fa3 keeps; with others it gives way to triton",
    frozenset({"fp8_e4m3"}),
    Evidence(_OVERRIDES, 'view.attention_backend == "fa3" and view.kv_cache_dtype == "fp8_e5m2"'),
)
USUAL_PAGE_SIZE: Row[int] = _always(
    "tokens of a KV page that fa3, triton, flashinfer and intel_amx take if none is asked for; "
    "hooks of models that specserve's table of architectures lacks may choose otherwise",
    1,
    Evidence(_OVERRIDES, 'return {"page_size": 1}'),
)
TOKENS_PER_REQUEST: Row[int] = _always(
    "KV tokens that must be there for each admitted request, else fewer are admitted",
    2,
    Evidence(
        "mem_cache/kv_cache_configurator.py", "min(requested_per_worker, token_capacity // 2)"
    ),
)
MIXED_CHUNK: Row[frozenset[str]] = Row(
    "drafters with which a prefill chunk and decodes may share a step (enable_mixed_chunk)",
    (
        Span(
            since="0.5.17",
            until="0.5.18",
            value=frozenset(),
            evidence=(Evidence(_SPECULATIVE_HOOK, "server_args.enable_mixed_chunk = False"),),
        ),
        Span(
            since="0.5.19",
            until="0.5.23",
            value=frozenset({"eagle3", "eagle", "mtp", "dflash"}),
            evidence=(Evidence("speculative/spec_info.py", "def supports_mixed_chunk("),),
        ),
    ),
)
MULTI_LAYER_TARGETS: Row[tuple[str, ...]] = Row(
    "targets (as their architectures begin) for which EAGLE and NEXTN become multi-layer EAGLE, "
    "whose worker has no adaptive states",
    (
        Span(
            since="0.5.17",
            until="0.5.18",
            value=("MiMoV2", "Step3p5"),
            evidence=(
                Evidence(
                    _OVERRIDES, '_register_for("MiMoV2ForCausalLM", "MiMoV2FlashForCausalLM")'
                ),
                Evidence(_OVERRIDES, '"Step3p5ForCausalLM" in arch'),
            ),
        ),
        Span(
            since="0.5.19",
            until="0.5.20",
            value=("MiMoV2", "Step3p5"),
            evidence=(
                Evidence("arg_groups/model_overrides/mimo_v2.py", _MULTI_LAYER),
                Evidence(_OVERRIDES, '"Step3p5ForCausalLM" in arch'),
            ),
        ),
        Span(
            since="0.5.21",
            until="0.5.23",
            value=("MiMoV2", "Step3p5", "GigaChat35"),
            evidence=(
                Evidence("arg_groups/model_overrides/mimo_v2.py", _MULTI_LAYER),
                Evidence(_OVERRIDES, '"Step3p5ForCausalLM" in arch'),
                Evidence(
                    "arg_groups/model_overrides/gigachat35.py",
                    '["enable_multi_layer_eagle"] = True',
                ),
            ),
        ),
    ),
)
FROZEN_KV_DRAFTS: Row[frozenset[str]] = _always(
    "drafts that turn EAGLE and NEXTN into FROZEN_KV_MTP, which has no adaptive states",
    frozenset({"Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM"}),
    Evidence(
        _SPECULATIVE_HOOK, '("Gemma4AssistantForCausalLM", "Gemma4UnifiedAssistantForCausalLM")'
    ),
)
EAGLE3_HEADS: Row[frozenset[str]] = _always(
    "architectures of EAGLE-3 heads: a draft's class is looked up by the name in its config.json",
    frozenset({"LlamaForCausalLMEagle3", "Eagle3DeepseekV2ForCausalLM"}),
    Evidence("models/llama_eagle3.py", "EntryClass = [LlamaForCausalLMEagle3]"),
    Evidence("models/kimi_k25_eagle3.py", "EntryClass = [Eagle3DeepseekV2ForCausalLM]"),
)
INPUT_IDS_TARGETS: Row[frozenset[str]] = _always(
    "targets that read aux layer ids as inputs, unless the first is 1; all others as outputs",
    frozenset({"DeepseekV3ForCausalLM", "KimiK25ForConditionalGeneration"}),
    Evidence("models/deepseek_v2.py", "if layer_ids and layer_ids[0] == 1:"),
    Evidence("models/llama.py", "self.model.layers_to_capture = [val + 1 for val in layer_ids]"),
)
SKIPPED_UPKEEP: Row[str] = _always(
    "the variable that stops the upkeep of the draft's state while nothing is drafted",
    "SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND",
    Evidence("environ.py", "SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND = EnvBool(False)"),
)
POLICY_SEAM: Row[Literal["replaced", "given"]] = Row(
    "how the adaptive controller gets its policy: replaced after it is made, or given to it",
    (
        Span(
            since="0.5.17",
            until="0.5.19",
            value="replaced",
            evidence=(Evidence(_ADAPTIVE, "self.params = AdaptiveSpeculativeParams("),),
        ),
        Span(
            since="0.5.20",
            until="0.5.23",
            value="given",
            evidence=(Evidence(_ADAPTIVE, "policy: AdaptiveSpecPolicy,"),),
        ),
    ),
)

ROWS: dict[str, Row[Any]] = {
    "TREE_WITH_OVERLAP": TREE_WITH_OVERLAP,
    "TREE_OVER_PAGES": TREE_OVER_PAGES,
    "NGRAM_OVER_PAGES": NGRAM_OVER_PAGES,
    "OVERLAP_ON_A_CPU": OVERLAP_ON_A_CPU,
    "FP8_OF_FA3": FP8_OF_FA3,
    "USUAL_PAGE_SIZE": USUAL_PAGE_SIZE,
    "TOKENS_PER_REQUEST": TOKENS_PER_REQUEST,
    "MIXED_CHUNK": MIXED_CHUNK,
    "MULTI_LAYER_TARGETS": MULTI_LAYER_TARGETS,
    "FROZEN_KV_DRAFTS": FROZEN_KV_DRAFTS,
    "EAGLE3_HEADS": EAGLE3_HEADS,
    "INPUT_IDS_TARGETS": INPUT_IDS_TARGETS,
    "SKIPPED_UPKEEP": SKIPPED_UPKEEP,
    "POLICY_SEAM": POLICY_SEAM,
}
