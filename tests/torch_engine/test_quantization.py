import sys
from pathlib import Path
from typing import Literal

import pytest
import torch
from torch import Tensor, nn

from specserve.errors import EngineError
from specserve.testing.checkpoints import DtypeName, write_draft, write_target
from specserve.testing.plans import draft_plan, target_plan
from specserve.torch_engine.attention import chain_step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.quantization import (
    Quantization,
    held_bytes,
    is_quantized,
    quantize,
    read_quantization,
)
from specserve.torch_engine.target import Target
from specserve.torch_engine.weights import load_draft, load_target

CPU = torch.device("cpu")
AUX = (2, 4, 5)
NUM_TOKENS = 12
INT8 = Quantization(scheme="int8", group_size=None)
INT4 = Quantization(scheme="int4", group_size=32)
Scheme = Literal["int8", "int4"]
CLOSENESS: dict[Scheme, float] = {"int8": 0.999, "int4": 0.85}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_target(tmp_path_factory.mktemp("target"), architecture="qwen2", num_layers=4)


def load(folder: Path, scheme: Literal["none", "int8", "int4"], dtype: DtypeName) -> Target:
    plan = target_plan(folder, dtype=dtype, quantization=scheme, group_size=32)
    return load_target(plan, (2,), CPU)


def logits(target: Target, chunk: int) -> Tensor:
    """[NUM_TOKENS, V], passed `chunk` tokens at a time."""
    block = target.shape.block
    cache = KVCache(
        num_layers=target.shape.num_layers,
        num_rows=1,
        row_tokens=16,
        num_kv_heads=block.num_kv_heads,
        head_dim=block.head_dim,
        dtype=target.norm.weight.dtype,
        device=CPU,
    )
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 320, (1, NUM_TOKENS), generator=generator)
    parts = []
    for start in range(0, NUM_TOKENS, chunk):
        step = chain_step(
            torch.tensor([start]),
            first_row=0,
            num_queries=chunk,
            row_tokens=16,
            kv_tokens=start + chunk,
        )
        with torch.inference_mode():
            output = target(tokens[:, start : start + chunk], step, cache)
            parts.append(target.logits(output.hidden)[0])
    return torch.cat(parts)


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
@pytest.mark.parametrize("scheme", CLOSENESS)
def test_quantized_logits_are_close_to_the_plain_ones(
    folder: Path, scheme: Scheme, dtype: DtypeName
) -> None:
    plain = logits(load(folder, "none", dtype), NUM_TOKENS).float()
    quantized = logits(load(folder, scheme, dtype), NUM_TOKENS).float()

    cosine = nn.functional.cosine_similarity(plain, quantized, dim=-1)
    assert not torch.equal(plain, quantized)
    assert cosine.mean() > CLOSENESS[scheme]


@pytest.mark.parametrize(
    ("quantization", "group_size", "num_levels"), [(INT8, 64, 255), (INT4, 32, 15)]
)
def test_weights_are_rounded_to_the_nearest_level_of_their_group(
    quantization: Quantization, group_size: int, num_levels: int
) -> None:
    """int8 spreads its levels over a row's largest magnitude, int4 over a group's range."""
    linear = nn.Linear(64, 32, bias=False)
    with torch.no_grad():
        linear.weight.copy_(torch.randn(32, 64, generator=torch.Generator().manual_seed(0)))
    groups = linear.weight.detach().clone().view(32, -1, group_size)
    largest = groups.abs().amax(-1)
    span = 2 * largest if quantization.scheme == "int8" else groups.amax(-1) - groups.amin(-1)

    quantize(linear, quantization)
    with torch.inference_mode():
        held = linear(torch.eye(64)).T.reshape(groups.shape)

    error = (held - groups).abs().amax(-1)
    assert (error > 0).all()
    assert (error <= 0.51 * span / num_levels).all()


@pytest.mark.parametrize("scheme", CLOSENESS)
@pytest.mark.parametrize("chunk", [1, 4])
def test_one_token_and_several_at_once_agree(folder: Path, scheme: Scheme, chunk: int) -> None:
    """Verification has to say what plain decoding would have said."""
    target = load(folder, scheme, "float32")

    torch.testing.assert_close(
        logits(target, NUM_TOKENS), logits(target, chunk), rtol=1e-3, atol=1e-3
    )


@pytest.mark.parametrize(("scheme", "shrinks_to"), [("int8", 0.27), ("int4", 0.19)])
def test_layers_take_fewer_bytes_and_the_rest_stays_exact(
    folder: Path, scheme: Scheme, shrinks_to: float
) -> None:
    """int4: half a byte a weight, and a scale and a zero point for every 32."""
    plain, quantized = load(folder, "none", "float32"), load(folder, scheme, "float32")

    def linears(target: Target) -> list[Tensor]:
        return [p for name, p in target.layers.named_parameters() if name.endswith("proj.weight")]

    before, after = (sum(map(held_bytes, linears(target))) for target in (plain, quantized))
    assert all(map(is_quantized, linears(quantized)))
    assert after / before < shrinks_to
    assert torch.equal(plain.embed_tokens.weight, quantized.embed_tokens.weight)
    assert torch.equal(plain.lm_head.weight, quantized.lm_head.weight)


@pytest.mark.parametrize("scheme", CLOSENESS)
def test_the_draft_has_its_own_scheme(tmp_path: Path, scheme: Scheme) -> None:
    """E01: neither follows the other."""
    target_folder = write_target(tmp_path / "target", architecture="llama")
    folder = write_draft(tmp_path / "draft", target_folder=target_folder)
    target = load_target(target_plan(target_folder), AUX, CPU)
    plan = draft_plan(folder, aux_layer_inputs=AUX, quantization=scheme, group_size=32)

    draft = load_draft(plan, target, CPU)

    quantized = {name for name, p in draft.named_parameters() if is_quantized(p)}
    projections = {f"midlayer.{n}_proj.weight" for n in ("qkv", "o", "gate_up", "down")}
    assert {"fc.weight", *projections} == quantized
    assert not any(map(is_quantized, target.parameters()))


def test_a_plain_plan_quantizes_nothing() -> None:
    linear = nn.Linear(32, 8)
    quantize(linear, read_quantization("none", None))

    assert not is_quantized(linear.weight)


@pytest.mark.parametrize(
    ("scheme", "group_size"), [("compressed_tensors_int4", 32), ("fp8", None), ("int4", None)]
)
def test_a_scheme_that_is_not_held_is_refused_by_name(scheme: str, group_size: int | None) -> None:
    with pytest.raises(EngineError, match=f"quantization '{scheme}'"):
        read_quantization(scheme, group_size)


def test_a_group_that_does_not_divide_the_inputs_is_refused() -> None:
    """torchao would leave such a layer plain without a word."""
    with pytest.raises(EngineError, match=r"groups of 32 can't hold a matrix \[8, 48\]"):
        quantize(nn.Linear(48, 8), INT4)


def test_a_group_size_without_a_kernel_is_refused() -> None:
    with pytest.raises(EngineError, match=r"groups of \(32, 64, 128\), not 256"):
        quantize(nn.Linear(256, 8), Quantization(scheme="int4", group_size=256))


def test_without_torchao_the_error_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torchao", None)

    with pytest.raises(EngineError, match=r"int8 needs torchao.*pip install 'torchao"):
        quantize(nn.Linear(32, 8), INT8)
