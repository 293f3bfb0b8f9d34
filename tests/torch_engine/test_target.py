import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, PreTrainedModel

from specserve.testing.checkpoints import Architecture, DtypeName, write_target
from specserve.testing.plans import target_plan
from specserve.torch_engine.attention import chain_step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.target import Target, TargetOutput
from specserve.torch_engine.weights import load_target

CPU = torch.device("cpu")
ROW_TOKENS = 64
AUX = (0, 2, 5)
VARIANTS: dict[str, tuple[Architecture, dict[str, Any]]] = {
    "llama": ("llama", {}),
    "llama, every head its own keys": ("llama", {"num_kv_heads": 4}),
    "llama, one key head": ("llama", {"num_kv_heads": 1}),
    "llama, tied embeddings": ("llama", {"tie_embeddings": True}),
    "llama, all biases": (
        "llama",
        {"config_overrides": {"attention_bias": True, "mlp_bias": True}},
    ),
    "llama, wide heads": ("llama", {"head_dim": 24}),
    "llama 3.1": (
        "llama",
        {
            "rope_parameters": {
                "rope_type": "llama3",
                "rope_theta": 500000.0,
                "factor": 8.0,
                "low_freq_factor": 1.0,
                "high_freq_factor": 4.0,
                "original_max_position_embeddings": 16,
            }
        },
    ),
    "mistral": ("mistral", {"head_dim": 24}),
    "qwen2": ("qwen2", {}),
    "qwen2, tied embeddings": ("qwen2", {"tie_embeddings": True}),
    "qwen3": ("qwen3", {"head_dim": 32}),
    "qwen3, attention bias": ("qwen3", {"config_overrides": {"attention_bias": True}}),
}


class Pair:
    """A tiny target, loaded by us and by transformers."""

    def __init__(self, folder: Path, architecture: Architecture, options: dict[str, Any]) -> None:
        write_target(folder, architecture=architecture, **options)
        self.ours = load_target(target_plan(folder), AUX, CPU)
        self.theirs: PreTrainedModel = AutoModelForCausalLM.from_pretrained(
            folder, dtype=torch.float32
        )

    def expected(self, tokens: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Logits [B, Q, V] and features [B, Q, n * d] by transformers, without a cache."""
        with torch.inference_mode():
            output = self.theirs(tokens, output_hidden_states=True)
        return output.logits, torch.cat([output.hidden_states[i] for i in AUX], dim=-1)


@pytest.fixture(scope="module", params=VARIANTS)
def pair(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Pair:
    return Pair(tmp_path_factory.mktemp("target"), *VARIANTS[request.param])


@contextmanager
def threads(num_threads: int) -> Iterator[None]:
    """The number of threads is torch's own state: give it back."""
    before = torch.get_num_threads()
    torch.set_num_threads(num_threads)
    try:
        yield
    finally:
        torch.set_num_threads(before)


def make_cache(target: Target, num_rows: int = 4) -> KVCache:
    block = target.shape.block
    return KVCache(
        num_layers=target.shape.num_layers,
        num_rows=num_rows,
        row_tokens=ROW_TOKENS,
        num_kv_heads=block.num_kv_heads,
        head_dim=block.head_dim,
        dtype=target.norm.weight.dtype,
        device=CPU,
    )


def random_tokens(num_rows: int, num_tokens: int) -> torch.Tensor:
    generator = torch.Generator().manual_seed(num_tokens)
    return torch.randint(0, 320, (num_rows, num_tokens), generator=generator)


def forward(
    target: Target, tokens: torch.Tensor, lengths: Sequence[int], cache: KVCache, first_row: int
) -> tuple[torch.Tensor, torch.Tensor]:
    """Logits and features of one pass over rows that hold `lengths` tokens."""
    num_queries = tokens.shape[1]
    step = chain_step(
        torch.tensor(lengths),
        first_row=first_row,
        num_queries=num_queries,
        row_tokens=ROW_TOKENS,
        kv_tokens=max(lengths) + num_queries,
        see_all=num_queries == 1 and len(set(lengths)) == 1,
    )
    with torch.inference_mode():
        output: TargetOutput = target(tokens, step, cache)
        assert output.features is not None
        return target.logits(output.hidden), output.features


@pytest.mark.parametrize("chunks", [[40], [33, 7], [1] * 40], ids=["whole", "chunks", "tokens"])
def test_logits_and_features_equal_transformers(pair: Pair, chunks: list[int]) -> None:
    tokens = random_tokens(1, 40)
    expected_logits, expected_features = pair.expected(tokens)
    cache = make_cache(pair.ours)

    start, parts = 0, []
    for size in chunks:
        chunk = tokens[:, start : start + size]
        parts.append(forward(pair.ours, chunk, [start], cache, first_row=2))
        start += size

    logits, features = (torch.cat(part, dim=1) for part in zip(*parts, strict=True))
    torch.testing.assert_close(expected_logits, logits, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(expected_features, features, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_queries", [1, 4])
def test_rows_of_different_lengths_are_decoded_together(pair: Pair, num_queries: int) -> None:
    lengths = [5, 17, 2]
    prompts = [random_tokens(1, length + num_queries) for length in lengths]
    cache = make_cache(pair.ours)
    for row, (prompt, length) in enumerate(zip(prompts, lengths, strict=True)):
        forward(pair.ours, prompt[:, :length], [0], cache, first_row=1 + row)

    new = torch.cat([prompt[:, -num_queries:] for prompt in prompts])
    logits, features = forward(pair.ours, new, lengths, cache, first_row=1)

    for row, prompt in enumerate(prompts):
        expected_logits, expected_features = pair.expected(prompt)
        torch.testing.assert_close(
            expected_logits[0, -num_queries:], logits[row], rtol=1e-4, atol=1e-4
        )
        torch.testing.assert_close(
            expected_features[0, -num_queries:], features[row], rtol=1e-4, atol=1e-4
        )


@pytest.mark.parametrize("aux", [(), (8,), (3, 8), (0, 1, 2, 3)], ids=str)
def test_features_are_what_enters_the_layers(tmp_path: Path, aux: tuple[int, ...]) -> None:
    """The id num_layers is what leaves the last layer, before the final norm."""
    write_target(tmp_path, architecture="llama")
    tokens = random_tokens(1, 6)
    target = load_target(target_plan(tmp_path), aux, CPU)
    entered: list[torch.Tensor] = []
    theirs = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    for layer in theirs.model.layers:
        layer.register_forward_pre_hook(lambda _, args: entered.append(args[0]))
    theirs.model.norm.register_forward_pre_hook(lambda _, args: entered.append(args[0]))
    step = chain_step(
        torch.tensor([0]), first_row=0, num_queries=6, row_tokens=ROW_TOKENS, kv_tokens=6
    )

    with torch.inference_mode():
        theirs(tokens)
        features = target(tokens, step, make_cache(target)).features

    if not aux:
        assert features is None
    else:
        expected = torch.cat([entered[i] for i in aux], dim=-1)
        torch.testing.assert_close(expected, features, rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("num_threads", [1, 2])
def test_layers_large_enough_to_be_sped_up_compute_the_same(
    tmp_path: Path, num_threads: int
) -> None:
    """One thread reads ahead, several use packed weights; verifying and decoding agree."""
    options = {"hidden_size": 192, "intermediate_size": 512, "vocab_size": 2048}
    with threads(num_threads):
        pair = Pair(tmp_path, "llama", {**options, "tie_embeddings": True})
    tokens = random_tokens(1, 40)
    expected, _ = pair.expected(tokens)

    for size in (40, 8, 1):
        cache = make_cache(pair.ours)
        parts = [
            forward(pair.ours, tokens[:, start : start + size], [start], cache, 0)[0]
            for start in range(0, 40, size)
        ]
        torch.testing.assert_close(expected, torch.cat(parts, dim=1), rtol=1e-4, atol=1e-4)


def test_the_older_spelling_of_rope_gives_the_same_logits(tmp_path: Path) -> None:
    write_target(
        tmp_path,
        architecture="llama",
        rope_parameters={"rope_type": "default", "rope_theta": 500.0},
    )
    tokens = random_tokens(1, 20)
    new = load_target(target_plan(tmp_path), AUX, CPU)
    config = json.loads((tmp_path / "config.json").read_text())
    config["rope_theta"] = config.pop("rope_parameters")["rope_theta"]
    (tmp_path / "config.json").write_text(json.dumps(config))
    old = load_target(target_plan(tmp_path), AUX, CPU)

    logits = [forward(target, tokens, [0], make_cache(target), 0)[0] for target in (new, old)]

    assert torch.equal(*logits)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("architecture", ["llama", "qwen3"])
def test_half_precision_agrees_with_float32(
    tmp_path: Path, architecture: Architecture, dtype: DtypeName
) -> None:
    """As closely as transformers' own half precision does: by cosine, over all logits."""
    write_target(tmp_path, architecture=architecture)
    tokens = random_tokens(1, 40)
    full, half = (load_target(target_plan(tmp_path, dtype=d), AUX, CPU) for d in ("float32", dtype))

    expected, _ = forward(full, tokens, [0], make_cache(full), 0)
    logits, features = forward(half, tokens, [0], make_cache(half), 0)

    assert half.norm.weight.dtype is logits.dtype is features.dtype
    cosine = torch.nn.functional.cosine_similarity(expected, logits.float(), dim=-1)
    assert cosine.mean() > 0.99


def test_tied_embeddings_are_held_once(tmp_path: Path) -> None:
    write_target(tmp_path, architecture="llama", tie_embeddings=True)
    target = load_target(target_plan(tmp_path), (), CPU)

    assert target.lm_head.weight is target.embed_tokens.weight
