"""The forward passes on a GPU: the same numbers as on the CPU, and nothing that waits for it."""

from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import Tensor

from specserve.testing.checkpoints import Architecture, DtypeName, write_draft, write_target
from specserve.testing.plans import draft_plan, target_plan
from specserve.torch_engine.attention import Step, chain_step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.quantization import Quantization, quantize
from specserve.torch_engine.target import Target, TargetOutput
from specserve.torch_engine.weights import load_draft, load_target

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.filterwarnings("ignore:Synchronization debug mode"),  # torch: a prototype
    pytest.mark.skipif(not torch.cuda.is_available(), reason="needs an NVIDIA GPU"),
]
CPU = torch.device("cpu")
AUX = (2, 4, 5)
ROW_TOKENS = 64


@pytest.fixture
def unsynchronized() -> Iterator[None]:
    """Whatever waits for the device raises: it could not be captured in a CUDA graph."""
    yield
    torch.cuda.set_sync_debug_mode("default")


def make_cache(num_layers: int, dtype: torch.dtype, device: torch.device) -> KVCache:
    return KVCache(
        num_layers=num_layers,
        num_rows=3,
        row_tokens=ROW_TOKENS,
        num_kv_heads=2,
        head_dim=16,
        dtype=dtype,
        device=device,
    )


def make_step(lengths: list[int], num_queries: int, device: torch.device) -> Step:
    return chain_step(
        torch.tensor(lengths, device=device),
        first_row=0,
        num_queries=num_queries,
        row_tokens=ROW_TOKENS,
        kv_tokens=max(lengths) + num_queries,
    )


def prompt_and_verify(target: Target, device: torch.device) -> tuple[Tensor, Tensor]:
    """Logits and features of four tokens behind two prompts of twelve."""
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 320, (2, 16), generator=generator).to(device)
    cache = make_cache(8, target.norm.weight.dtype, device)
    prompt, verify = make_step([0, 0], 12, device), make_step([12, 12], 4, device)
    with torch.inference_mode():
        if device.type == "cuda":
            torch.cuda.set_sync_debug_mode("error")
        target(tokens[:, :12], prompt, cache)
        output: TargetOutput = target(tokens[:, 12:], verify, cache)
        logits = target.logits(output.hidden)
        torch.cuda.set_sync_debug_mode("default")
    assert output.features is not None
    return logits.float().cpu(), output.features.float().cpu()


@pytest.mark.usefixtures("unsynchronized")
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
@pytest.mark.parametrize(
    ("dtype", "tolerance"), [("float32", 1e-3), ("bfloat16", None), ("float16", None)]
)
def test_logits_and_features_are_those_of_the_cpu(
    tmp_path: Path, architecture: Architecture, dtype: DtypeName, tolerance: float | None
) -> None:
    write_target(tmp_path, architecture=architecture)
    gpu = torch.device("cuda")
    expected = prompt_and_verify(load_target(target_plan(tmp_path), AUX, CPU), CPU)
    found = prompt_and_verify(load_target(target_plan(tmp_path, dtype=dtype), AUX, gpu), gpu)

    for wanted, got in zip(expected, found, strict=True):
        if tolerance is not None:
            torch.testing.assert_close(wanted, got, rtol=tolerance, atol=tolerance)
        cosine = torch.nn.functional.cosine_similarity(wanted, got, dim=-1)
        assert cosine.mean() > 0.98


def test_int8_layers_compute_on_the_gpu(tmp_path: Path) -> None:
    write_target(tmp_path, architecture="llama", hidden_size=64, intermediate_size=128)
    gpu = torch.device("cuda")
    plans = [target_plan(tmp_path, dtype="bfloat16", quantization=q) for q in ("none", "int8")]
    plain, quantized = (prompt_and_verify(load_target(p, AUX, gpu), gpu)[0] for p in plans)

    cosine = torch.nn.functional.cosine_similarity(plain, quantized, dim=-1)
    assert not torch.equal(plain, quantized)
    assert cosine.mean() > 0.98


@pytest.mark.parametrize("group_size", [32, 64, 128, 256])
def test_int4_weights_are_the_nearest_of_16_levels_on_the_gpu(group_size: int) -> None:
    """Whole models say little: 4 bits of a small random one change its logits for good reason."""
    gpu = torch.device("cuda")
    linear = torch.nn.Linear(512, 64, bias=False, device=gpu, dtype=torch.bfloat16)
    with torch.no_grad():
        linear.weight.normal_(generator=torch.Generator(gpu).manual_seed(0))
    groups = linear.weight.detach().float().view(64, -1, group_size)
    level = (groups.amax(-1) - groups.amin(-1)) / 15

    quantize(linear, Quantization(scheme="int4", group_size=group_size))
    with torch.inference_mode():
        held = linear(torch.eye(512, device=gpu, dtype=torch.bfloat16)).float()

    error = (held.T.reshape(groups.shape) - groups).abs()
    # Scales, zero points and products are rounded to bfloat16's 8 bits, and add up.
    rounding = groups.abs().amax(-1) * 2**-6
    assert (error.amax(-1) > 0).all()
    assert (error.amax(-1) <= level / 2 + rounding).all()


@pytest.mark.usefixtures("unsynchronized")
def test_the_draft_computes_as_on_the_cpu(tmp_path: Path) -> None:
    target_folder = write_target(tmp_path / "target", architecture="llama")
    folder = write_draft(tmp_path / "draft", target_folder=target_folder)
    plan = draft_plan(folder, aux_layer_inputs=AUX)
    generator = torch.Generator().manual_seed(0)
    tokens = torch.randint(0, 320, (2, 5), generator=generator)
    features = torch.randn(2, 5, 3 * 64, generator=generator)
    logits = {}
    for device in (CPU, torch.device("cuda")):
        target = load_target(target_plan(target_folder), AUX, device)
        draft = load_draft(plan, target, device)
        step = make_step([0, 0], 5, device)
        inputs = tokens.to(device), draft.fuse(features.to(device))
        with torch.inference_mode():
            if device.type == "cuda":
                torch.cuda.set_sync_debug_mode("error")
            hidden = draft(*inputs, step, make_cache(1, torch.float32, device))
            ids = draft.target_ids(draft.logits(hidden).argmax(-1))
            torch.cuda.set_sync_debug_mode("default")
        logits[device.type] = draft.logits(hidden).cpu(), ids.cpu()

    torch.testing.assert_close(logits["cpu"][0], logits["cuda"][0], rtol=1e-3, atol=1e-3)
    assert torch.equal(logits["cpu"][1], logits["cuda"][1])
