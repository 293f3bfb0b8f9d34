from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from safetensors.torch import load_file

from specserve.checkpoint.architecture import Dimensions, Mla, Moe, read_dimensions
from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.facts import Facts, gather_facts
from specserve.plan import Plan, make_plan
from specserve.plan.holding import Holding
from specserve.plan.weights import estimate
from specserve.testing.checkpoints import write_draft, write_target
from specserve.torch_engine.quantization import held_bytes
from specserve.torch_engine.weights import load_draft, load_target

Architecture = Literal["llama", "mistral", "qwen2", "qwen3"]


def run(target: Path, draft: Path, *overrides: str) -> RunConfig:
    pair = [f"model.path={target}", f"model.draft_path={draft}", "engine.device=cpu"]
    # Six layers leave room for three different aux layers, but not for the usual ones.
    pair += ["speculation.draft.aux_layer_ids=[0,2,4]"]
    return load_run(["+experiment=topk1_v2", *pair, *overrides]).config


def plan(target: Path, draft: Path, *overrides: str) -> Plan:
    config = run(target, draft, *overrides)
    return make_plan(config, gather_facts(config))


def numel(folder: Path, *left_out: str) -> int:
    """Numbers in the stored tensors, counted by another reader than ours."""
    tensors = load_file(folder / "model.safetensors")
    return sum(t.numel() for name, t in tensors.items() if name not in left_out)


def held(model: torch.nn.Module, *borrowed: torch.nn.Module) -> int:
    """Bytes of a loaded model's own parameters and buffers, each once."""
    lent = {id(parameter) for part in borrowed for parameter in part.parameters()}
    tensors = {id(t): t for t in [*model.parameters(), *model.buffers()] if id(t) not in lent}
    return sum(held_bytes(tensor) for tensor in tensors.values())


PLAIN_TYPES = ["model.dtype=float32"], ["model.dtype=bfloat16"]
INT8 = ["model.dtype=float32", "quantization=int8", "quantization.draft=inherit"]
INT4 = ["model.dtype=bfloat16", "quantization=int4", "quantization.group_size=32"]


@pytest.mark.parametrize("tied", [False, True], ids=["untied", "tied"])
@pytest.mark.parametrize(
    ("architecture", "overrides"),
    [
        *[(name, types) for name in ("llama", "qwen2", "qwen3") for types in PLAIN_TYPES],
        ("llama", INT8),
        ("llama", [*INT4, "quantization.draft=inherit"]),
        ("qwen3", [*INT4, "quantization.draft=int8"]),
    ],
)
def test_planned_weights_are_what_the_torch_engine_holds(
    tmp_path: Path, architecture: Architecture, overrides: list[str], tied: bool
) -> None:
    folder = write_target(
        tmp_path / "t", architecture=architecture, num_layers=6, tie_embeddings=tied
    )
    planned = plan(folder, write_draft(tmp_path / "d", target_folder=folder), *overrides)
    assert planned.speculation is not None
    device = torch.device("cpu")

    target = load_target(planned.target, planned.speculation.draft.aux_layer_inputs, device)
    draft = load_draft(planned.speculation.draft, target, device)

    assert held(target) == planned.memory.target_weight_bytes
    assert held(draft, target) == planned.memory.draft_weight_bytes


def test_an_lm_head_that_is_stored_though_tied_counts_once(tmp_path: Path) -> None:
    tied = write_target(tmp_path / "t", architecture="llama", tie_embeddings=True)
    draft = write_draft(tmp_path / "d", target_folder=tied)
    config = run(tied, draft, "model.dtype=float32")
    facts = gather_facts(config)
    before = make_plan(config, facts).memory.target_weight_bytes
    assert facts.target is not None
    assert facts.target.tensors is not None
    tensors = facts.target.tensors
    stored = tensors | {"lm_head.weight": tensors["model.embed_tokens.weight"]}
    target = facts.target.model_copy(update={"tensors": stored})

    after = make_plan(config, facts.model_copy(update={"target": target}))

    assert before == numel(tied) * 4 == after.memory.target_weight_bytes


def test_a_borrowed_embedding_is_not_counted_and_an_own_one_is(tmp_path: Path) -> None:
    target = write_target(tmp_path / "t", architecture="llama")
    lean = write_draft(tmp_path / "lean", target_folder=target)
    full = write_draft(tmp_path / "full", target_folder=target, with_embed=True)

    lean_bytes, full_bytes = (
        plan(target, draft, "model.dtype=float32").memory.draft_weight_bytes
        for draft in (lean, full)
    )

    assert 320 * 64 * 4 == full_bytes - lean_bytes


def test_quantizing_shrinks_the_layers_and_leaves_embedding_and_head(tmp_path: Path) -> None:
    target = write_target(tmp_path / "t", architecture="llama")
    draft = write_draft(tmp_path / "d", target_folder=target)
    tensors = load_file(target / "model.safetensors")
    matrices = [t for name, t in tensors.items() if name.endswith("_proj.weight")]
    others = sum(t.numel() for t in tensors.values()) - sum(t.numel() for t in matrices)

    int8 = plan(target, draft, "model.dtype=bfloat16", "quantization=int8").memory
    int4 = plan(
        target, draft, "model.dtype=bfloat16", "quantization=int4", "quantization.group_size=32"
    ).memory

    rows = sum(t.shape[0] for t in matrices)
    numbers = sum(t.numel() for t in matrices)
    assert 2 * others + numbers + 5 * rows == int8.target_weight_bytes
    assert 2 * others + numbers // 2 + numbers // 32 * 2 * 2 == int4.target_weight_bytes


def test_four_bits_on_a_gpu_fill_short_rows_up() -> None:
    """torchao's layout for CUDA: inputs to a multiple of 1024, with scales for these too."""
    on_cpu = Holding(dtype="bfloat16", scheme="int4", group_size=128)
    on_gpu = replace(on_cpu, row_multiple=1024)

    def padded(rows: int, columns: int) -> int:
        return rows * columns // 2 + rows * columns // 128 * 2 * 2

    assert padded(64, 2560) == on_cpu.matrix_bytes(64 * 2560, 64)
    assert padded(64, 3072) == on_gpu.matrix_bytes(64 * 2560, 64)
    assert padded(64, 4096) == on_gpu.matrix_bytes(64 * 4096, 64)


def test_rows_of_whole_thousands_cost_a_gpu_no_more(h200: Facts, cpu: Facts) -> None:
    """Llama 3.1 8B has widths of 4096 and 14336 only: nothing is filled up."""
    config = load_run(["model=llama31_8b", "quantization=int4"]).config

    on_gpu, on_cpu = (make_plan(config, facts).memory for facts in (h200, cpu))

    assert on_gpu.target_weight_bytes == on_cpu.target_weight_bytes
    assert on_gpu.draft_weight_bytes == on_cpu.draft_weight_bytes


def dense(**changes: object) -> Dimensions:
    sizes: dict[str, object] = {
        "num_layers": 8,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_heads": 4,
        "num_kv_heads": 2,
        "head_dim": 16,
        "vocab_size": 320,
        "max_positions": 512,
        "tie_word_embeddings": False,
        "mla": None,
        "moe": None,
    }
    return Dimensions(**(sizes | changes))  # type: ignore[arg-type]


PLAIN = Holding(dtype="bfloat16", scheme="none", group_size=None)
STORED_INT4 = Holding(dtype="bfloat16", scheme="compressed_tensors_int4", group_size=32)


@pytest.mark.parametrize("tied", [False, True])
def test_the_estimate_of_a_dense_model_is_exact(tmp_path: Path, tied: bool) -> None:
    target = write_target(tmp_path, architecture="llama", tie_embeddings=tied)

    assert 2 * numel(target) == estimate(dense(tie_word_embeddings=tied), PLAIN)


def test_the_estimate_of_a_mixture_counts_every_expert() -> None:
    moe = Moe(num_experts=10, num_shared_experts=1, intermediate_size=32, num_dense_layers=2)

    grown = estimate(dense(moe=moe), PLAIN) - estimate(dense(num_layers=2), PLAIN)

    attention = 64 * 16 * (2 * 4 + 2 * 2)
    assert 6 * 2 * (attention + 11 * 3 * 64 * 32 + 10 * 64 + 2 * 64) == grown


def test_a_mixture_in_four_bits_has_only_its_routed_experts_in_four_bits() -> None:
    moe = Moe(num_experts=10, num_shared_experts=1, intermediate_size=32, num_dense_layers=2)
    size = dense(moe=moe)

    saved = estimate(size, PLAIN) - estimate(size, STORED_INT4)

    routed = 6 * 10 * 3 * 64 * 32
    assert 2 * routed - (routed // 2 + routed // 32 * 2) == saved


def test_mla_has_its_compressions_and_expansions() -> None:
    mla = Mla(q_lora_rank=24, kv_lora_rank=16, qk_rope_head_dim=4, qk_nope_head_dim=8, v_head_dim=8)

    norms = 24 + 16
    per_layer = 64 * 24 + 24 * 4 * 12 + 64 * 20 + 16 * 4 * 16 + 4 * 8 * 64 + norms
    without = 64 * 16 * (2 * 4 + 2 * 2)
    assert 8 * 2 * (per_layer - without) == estimate(dense(mla=mla), PLAIN) - estimate(
        dense(), PLAIN
    )


def test_kimi_k25_is_estimated_as_large_as_its_published_files(kimi: Facts) -> None:
    """The checkpoint's files are 595 GB together."""
    assert kimi.target is not None
    size = read_dimensions(kimi.target.config, key="model.path", path="kimi")

    assert estimate(size, STORED_INT4) == pytest.approx(595e9, rel=0.01)


def test_llama_31_8b_is_estimated_at_its_published_size(h200: Facts) -> None:
    """8.03 billion parameters in bfloat16."""
    config = load_run(["model=llama31_8b", "model.context_length=2048"]).config

    found = make_plan(config, h200).memory.target_weight_bytes

    assert found == pytest.approx(2 * 8.03e9, rel=0.001)
