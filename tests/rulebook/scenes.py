"""For each rule that needs checkpoints or a machine: a run, and facts, that break it."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from specserve.check import report_on
from specserve.checkpoint.safetensors_header import TensorHeader
from specserve.config.load import load_run
from specserve.errors import ConfigError, Doubt, Problem
from specserve.facts import Facts
from specserve.rule_ids import RuleId
from tests.rulebook.pairs import (
    CPU,
    DRAFT,
    DRAFT_VOCAB,
    HIDDEN,
    TARGET,
    VERSIONS,
    draft,
    facts,
    gpu_machine,
    target,
)

CALIBRATION = Path(__file__).parent.parent / "data/calibration.json"
_PAIR = ("+experiment=topk1_v2", f"model.path={TARGET}", f"model.draft_path={DRAFT}")
_COST_MODEL = ("policy=cost_model", f"policy.calibration={CALIBRATION}")
_SGLANG = ("engine=sglang", "policy=always")
_INT4 = ("quantization=int4", "quantization.group_size=64", "model.dtype=bfloat16")
_STORED_INT4 = {
    "quant_method": "compressed-tensors",
    "config_groups": {"all": {"weights": {"num_bits": 4, "group_size": 32}}},
}
_GPTQ = {"quant_method": "gptq", "bits": 4, "group_size": 32}
_WIDE: dict[str, Any] = {"hidden_size": 256, "intermediate_size": 256, "head_dim": 64}
_LARGE: dict[str, Any] = {"hidden_size": 4096, "intermediate_size": 11008, "head_dim": 1024}
_LONG: dict[str, Any] = {"max_position_embeddings": 2**24}


@dataclass(frozen=True, slots=True)
class Scene:
    """Overrides beside those that choose the pair, and what is known of pair and machine."""

    overrides: Sequence[str] = ()
    facts: Facts = field(default_factory=facts)


def told(overrides: Sequence[str], known: Facts) -> list[Problem | Doubt]:
    """The problems of a run, or its doubts if it has no problem."""
    try:
        return list(report_on(load_run([*_PAIR, *overrides]).config, known).warnings)
    except ConfigError as error:
        return list(error.problems)


_GPU = gpu_machine()
_TWO_IDS = "speculation.draft.aux_layer_ids=[1,3]"

SCENES: dict[RuleId, Scene] = {
    RuleId.TREE_WITHOUT_SUPPORT: Scene(
        (*_SGLANG, "speculation=ngram", "attention=triton", "engine.page_size=16"),
        facts(machine=_GPU, draft=None),
    ),
    RuleId.EXTRA_ARGUMENT: Scene((*_SGLANG, "+engine.extra_args.tp_size=2"), facts(machine=_GPU)),
    RuleId.WOULD_BE_REWRITTEN: Scene((*_SGLANG, "engine.device=cpu")),
    RuleId.CHUNK_OVER_PAGES: Scene((*_SGLANG, "engine.page_size=48"), facts(machine=_GPU)),
    RuleId.CALIBRATION_OF_ANOTHER_TREE: Scene((*_COST_MODEL, "speculation.topk=2")),
    RuleId.CALIBRATION_OF_ANOTHER_ENGINE: Scene(
        (*_COST_MODEL, "engine=sglang"), facts(machine=_GPU)
    ),
    RuleId.CALIBRATION_OF_ANOTHER_DEVICE: Scene(_COST_MODEL, facts(machine=_GPU)),
    RuleId.IMPOSSIBLE_DIMENSION: Scene((), facts(target=target(num_attention_heads=0))),
    RuleId.UNSUPPORTED_ARCHITECTURE: Scene(
        (), facts(target=target(architectures=["FooForCausalLM"]))
    ),
    RuleId.UNSUPPORTED_COMPUTATION: Scene(
        (), facts(machine=_GPU, target=target(hidden_act="gelu"))
    ),
    RuleId.CONTEXT_TOO_LONG: Scene(("model.context_length=4096",)),
    RuleId.NO_ACTIVATION_DTYPE: Scene(
        ("model.dtype=auto",), facts(target=target(torch_dtype="float8_e4m3fn"))
    ),
    RuleId.NO_TOKENIZER: Scene((), facts(target=target(tokenizer_vocab_size=None))),
    RuleId.TOKENIZER_OF_ANOTHER_MODEL: Scene((), facts(target=target(tokenizer_vocab_size=9999))),
    RuleId.TARGET_TENSORS: Scene((), facts(target=target(drop=["model.norm.weight"]))),
    RuleId.QUANTIZED_UNASKED: Scene(
        (), facts(machine=_GPU, target=target(quantization_config=_GPTQ))
    ),
    RuleId.QUANTIZED_TWICE: Scene(
        ("quantization=int8",), facts(target=target(quantization_config=_GPTQ))
    ),
    RuleId.NOT_STORED_IN_4_BITS: Scene(
        (*_SGLANG, "quantization=compressed_tensors_int4"), facts(machine=_GPU)
    ),
    RuleId.OTHER_STORED_GROUPS: Scene(
        (*_SGLANG, "quantization=compressed_tensors_int4", "quantization.group_size=128"),
        facts(machine=_GPU, target=target(quantization_config=_STORED_INT4)),
    ),
    RuleId.ODD_GROUPS: Scene(("quantization=int4", "quantization.group_size=96")),
    RuleId.NOT_STORED_SO: Scene((*_SGLANG, "quantization=awq"), facts(machine=_GPU)),
    RuleId.NO_BUNDLED_LAYERS: Scene((*_SGLANG, "speculation=mtp"), facts(machine=_GPU, draft=None)),
    RuleId.NO_STOP_TOKEN: Scene((), facts(target=target(eos_token_id=None))),
    RuleId.NOT_AN_EAGLE3_HEAD: Scene(
        (), facts(draft=draft(architectures=["LlamaForCausalLM"], drop=["fc.weight"]))
    ),
    RuleId.HEAD_OF_ANOTHER_TARGET: Scene((), facts(draft=draft(target_hidden_size=4096))),
    RuleId.DRAFT_TENSORS: Scene((), facts(draft=draft(drop=["lm_head.weight"]))),
    RuleId.AUX_LAYER_IDS: Scene(("speculation.draft.aux_layer_ids=[1,40,5]",)),
    RuleId.AUX_LAYER_COUNT: Scene((_TWO_IDS,)),
    RuleId.VOCABULARY_MAP_FORM: Scene(
        (), facts(draft=draft(change={"d2t": TensorHeader(dtype="F32", shape=(DRAFT_VOCAB,))}))
    ),
    RuleId.VOCABULARY_MAP_RANGE: Scene(
        (), facts(draft=draft(d2t=[3 * index for index in range(DRAFT_VOCAB)]))
    ),
    RuleId.VOCABULARY_MAPS_DISAGREE: Scene(
        (), facts(draft=draft(marked=range(HIDDEN, HIDDEN + DRAFT_VOCAB)))
    ),
    RuleId.DRAFT_STORED_QUANTIZED: Scene((), facts(draft=draft(quantization_config=_GPTQ))),
    RuleId.DRAFT_CANNOT_INHERIT: Scene(
        (*_SGLANG, "quantization=compressed_tensors_int4", "quantization.draft=inherit"),
        facts(machine=_GPU, target=target(quantization_config=_STORED_INT4)),
    ),
    RuleId.DRAFT_ODD_GROUPS: Scene(
        ("quantization.draft=int4",), facts(draft=draft(headers=False, intermediate_size=100))
    ),
    RuleId.DRAFT_OF_ANOTHER_METHOD: Scene(
        (*_SGLANG, "speculation=standalone", f"speculation.draft.path={DRAFT}"),
        facts(machine=_GPU),
    ),
    RuleId.AUX_LAYERS_READ_OTHERWISE: Scene(
        (*_SGLANG, "speculation.draft.aux_layer_ids=[1,2,3]"), facts(machine=_GPU)
    ),
    RuleId.DRAFT_OF_ANOTHER_VOCABULARY: Scene(
        (*_SGLANG, "speculation=standalone", f"speculation.draft.path={DRAFT}"),
        facts(
            machine=_GPU,
            draft=target(vocab_size=999).model_copy(update={"path": DRAFT, "sha256": "other"}),
        ),
    ),
    RuleId.BUNDLED_DRAFT: Scene(
        ("model.draft_path=bundled:demo/draft",), facts(draft=draft(target_hidden_size=256))
    ),
    RuleId.AUX_LAYERS_GUESSED: Scene((), facts(draft=draft(eagle_config=None))),
    RuleId.TOO_FEW_GPUS: Scene((*_SGLANG, "parallel=tp2"), facts(machine=_GPU)),
    RuleId.NO_USABLE_GPU: Scene(("engine.device=cuda",)),
    RuleId.GRAPHS_ON_A_CPU: Scene(("cuda_graph.batch_sizes=[1,2]",)),
    RuleId.NO_TORCHAO: Scene(("quantization=int8",), facts(versions={"torch": "2.11.0"})),
    RuleId.INT4_DTYPE: Scene((*_INT4, "model.dtype=float16"), facts(machine=_GPU)),
    RuleId.INT4_GPU_TOO_OLD: Scene(
        ("quantization=int4", "model.dtype=bfloat16"),
        facts(
            machine=gpu_machine("7.5"),
            target=target(headers=False, **_WIDE),
            draft=draft(headers=False, target_hidden_size=256, **_WIDE),
        ),
    ),
    RuleId.INT4_WITHOUT_KERNEL: Scene(
        ("quantization=int4", "quantization.group_size=256"),
        facts(
            target=target(headers=False, **_WIDE),
            draft=draft(headers=False, target_hidden_size=256, **_WIDE),
        ),
    ),
    RuleId.WEIGHTS_DO_NOT_FIT: Scene(
        ("scheduler.max_running_requests=8",),
        facts(
            machine=gpu_machine(gib=12),
            target=target(headers=False, num_hidden_layers=32, **_LARGE),
            draft=draft(headers=False, target_hidden_size=4096, **_LARGE),
        ),
    ),
    RuleId.REQUESTS_DO_NOT_FIT: Scene(
        ("scheduler.max_running_requests=4096",),
        facts(machine=CPU.model_copy(update={"memory_bytes": 3 * 2**29})),
    ),
    RuleId.CONTEXT_DOES_NOT_FIT: Scene(
        (*_SGLANG, "model.context_length=auto"),
        facts(machine=gpu_machine(gib=8), target=target(**_LONG), draft=draft(**_LONG)),
    ),
    RuleId.KV_POOL_DOES_NOT_FIT: Scene(
        (*_SGLANG, "scheduler.max_kv_tokens=1000000000"), facts(machine=gpu_machine(gib=8))
    ),
    RuleId.UNSUPPORTED_VERSION: Scene(
        _SGLANG, facts(machine=_GPU, versions=VERSIONS | {"sglang": "0.4.0"})
    ),
    RuleId.UNTESTED_VERSION: Scene(
        (*_SGLANG, "engine.allow_untested_version=true"),
        facts(machine=_GPU, versions=VERSIONS | {"sglang": "0.4.0"}),
    ),
    RuleId.ATTENTION_WITHOUT_KERNEL: Scene(
        (*_SGLANG, "attention=fa3"), facts(machine=gpu_machine("10.0"))
    ),
    RuleId.NUMBERS_WITHOUT_HARDWARE: Scene(
        (*_SGLANG, "quantization=fp8"), facts(machine=gpu_machine("7.5"))
    ),
    RuleId.GRAPHS_UNCOVERED: Scene(("cuda_graph.batch_sizes=[1,2,4,8]",), facts(machine=_GPU)),
    RuleId.GREEDY_ON_A_CPU: Scene((*_SGLANG, "engine.device=cpu", "scheduler=sync")),
}
