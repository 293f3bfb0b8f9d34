from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor

from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.plans import draft_plan, target_plan
from specserve.torch_engine.attention import chain_step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.draft import Draft
from specserve.torch_engine.weights import load_draft, load_target

CPU = torch.device("cpu")
ROW_TOKENS = 64
AUX = (2, 4, 5)
EPS, THETA = 1e-5, 10000.0


class Reference:
    """An EAGLE-3 head over a whole sequence of entries at once, from the stored tensors."""

    def __init__(self, draft_folder: Path, embedding: Tensor, config: dict[str, Any]) -> None:
        stored = load_file(draft_folder / "model.safetensors")
        self.tensors = {name.removeprefix("midlayer."): value for name, value in stored.items()}
        self.embedding = embedding
        self.num_heads = config["num_attention_heads"]
        self.num_kv_heads = config["num_key_value_heads"]
        self.head_dim = config["head_dim"]

    def linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.tensors[f"{name}.weight"].T

    def norm(self, x: Tensor, name: str) -> Tensor:
        scale = (x.square().mean(-1, keepdim=True) + EPS).rsqrt()
        return x * scale * self.tensors[f"{name}.weight"]

    def rotate(self, heads: Tensor, positions: Tensor) -> Tensor:
        """[n, H, D] at positions [n]: element i turns with element i + D/2."""
        exponents = torch.arange(0, self.head_dim, 2) / self.head_dim
        angles = positions[:, None] / THETA**exponents
        cos, sin = (f(angles).repeat(1, 2)[:, None] for f in (torch.cos, torch.sin))
        first, second = heads.chunk(2, dim=-1)
        return heads * cos + torch.cat((-second, first), dim=-1) * sin

    def hidden(self, tokens: Tensor, fused: Tensor, positions: Tensor) -> Tensor:
        """Entries tokens [n], fused [n, d], each seeing itself and those before -> [n, d]."""
        n = len(tokens)
        joined = torch.cat(
            (
                self.norm(self.embedding[tokens], "input_layernorm"),
                self.norm(fused, "hidden_norm"),
            ),
            dim=-1,
        )
        queries, keys, values = (
            self.linear(joined, f"self_attn.{name}_proj").view(n, -1, self.head_dim)
            for name in "qkv"
        )
        repeats = self.num_heads // self.num_kv_heads
        keys = self.rotate(keys, positions).repeat_interleave(repeats, dim=1)
        values = values.repeat_interleave(repeats, dim=1)
        scores = torch.einsum("qhd,khd->hqk", self.rotate(queries, positions), keys)
        hidden_above = torch.full((n, n), -torch.inf).triu(1)
        weights = (scores / self.head_dim**0.5 + hidden_above).softmax(-1)
        mixed = torch.einsum("hqk,khd->qhd", weights, values).reshape(n, -1)
        residual = fused + self.linear(mixed, "self_attn.o_proj")
        x = self.norm(residual, "post_attention_layernorm")
        gate, up = self.linear(x, "mlp.gate_proj"), self.linear(x, "mlp.up_proj")
        return residual + self.linear(torch.nn.functional.silu(gate) * up, "mlp.down_proj")

    def logits(self, hidden: Tensor) -> Tensor:
        return self.linear(self.norm(hidden, "norm"), "lm_head")


SHAPES: dict[str, dict[str, Any]] = {
    "as the target": {},
    "own heads": {"num_heads": 8, "num_kv_heads": 2, "head_dim": 24},
    "every head its own keys": {"num_heads": 4, "num_kv_heads": 4},
    "own embedding": {"with_embed": True},
    "full vocabulary": {"draft_vocab_size": 320},
}


@pytest.fixture(params=SHAPES)
def pair(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Draft, Reference]:
    options = SHAPES[request.param]
    target_folder = write_target(tmp_path / "target", architecture="llama")
    folder = write_draft(tmp_path / "draft", target_folder=target_folder, **options)
    plan = draft_plan(
        folder,
        aux_layer_inputs=AUX,
        borrowed=() if options.get("with_embed") else ("embed_tokens",),
    )
    target = load_target(target_plan(target_folder), AUX, CPU)
    draft = load_draft(plan, target, CPU)
    embedding = load_file(folder / "model.safetensors").get(
        "embed_tokens.weight", target.embed_tokens.weight
    )
    return draft, Reference(folder, embedding, plan.config)


def make_cache(draft: Draft) -> KVCache:
    return KVCache(
        num_layers=1,
        num_rows=3,
        row_tokens=ROW_TOKENS,
        num_kv_heads=draft.shape.block.num_kv_heads,
        head_dim=draft.shape.block.head_dim,
        dtype=torch.float32,
        device=CPU,
    )


def random_entries(num_entries: int, seed: int = 0) -> tuple[Tensor, Tensor]:
    """Tokens [n] and raw features [n, 3 * 64]."""
    generator = torch.Generator().manual_seed(seed)
    return (
        torch.randint(0, 320, (num_entries,), generator=generator),
        torch.randn(num_entries, 3 * 64, generator=generator),
    )


def extend(
    draft: Draft,
    cache: KVCache,
    tokens: Tensor,
    fused: Tensor,
    *,
    num_held: int,
    positions: Tensor | None = None,
) -> Tensor:
    """Pass entries of row 1 behind the `num_held` that it has; [n, d]."""
    num_entries = len(tokens)
    step = chain_step(
        torch.tensor([num_held]),
        first_row=1,
        num_queries=num_entries,
        row_tokens=ROW_TOKENS,
        kv_tokens=num_held + num_entries,
        positions=None if positions is None else positions[None],
    )
    with torch.inference_mode():
        hidden: Tensor = draft(tokens[None], fused[None], step, cache)[0]
        return hidden


@pytest.mark.parametrize("chunks", [[40], [33, 7], [1] * 8])
def test_hidden_states_and_logits_equal_the_reference(
    pair: tuple[Draft, Reference], chunks: list[int]
) -> None:
    draft, reference = pair
    tokens, features = random_entries(sum(chunks))
    fused = draft.fuse(features)
    expected = reference.hidden(
        tokens, features @ reference.tensors["fc.weight"].T, torch.arange(40)[: len(tokens)]
    )
    cache = make_cache(draft)

    start, parts = 0, []
    for size in chunks:
        piece = slice(start, start + size)
        parts.append(extend(draft, cache, tokens[piece], fused[piece], num_held=start))
        start += size

    hidden = torch.cat(parts)
    torch.testing.assert_close(expected, hidden, rtol=1e-4, atol=1e-4)
    torch.testing.assert_close(
        reference.logits(expected), draft.logits(hidden), rtol=1e-4, atol=1e-4
    )


def test_deeper_steps_take_the_own_output_for_the_feature(pair: tuple[Draft, Reference]) -> None:
    """A chain of three after ten entries, each recomputed by the reference from the start."""
    draft, reference = pair
    tokens, features = random_entries(10)
    fused = draft.fuse(features)
    cache = make_cache(draft)
    hidden = extend(draft, cache, tokens, fused, num_held=0)[-1:]

    for depth in range(3):
        token = draft.target_ids(draft.logits(hidden).argmax(-1))
        tokens, fused = torch.cat((tokens, token)), torch.cat((fused, hidden))
        hidden = extend(draft, cache, token, hidden, num_held=10 + depth)
        expected = reference.hidden(tokens, fused, torch.arange(len(tokens)))[-1:]
        torch.testing.assert_close(expected, hidden, rtol=1e-4, atol=1e-4)


def test_a_hole_in_the_entries_keeps_the_positions(pair: tuple[Draft, Reference]) -> None:
    """Entries that were never made leave no slots; the later ones know where they are."""
    draft, reference = pair
    tokens, features = random_entries(8)
    fused = draft.fuse(features)
    positions = torch.tensor([0, 1, 2, 3, 20, 21, 22, 23])
    cache = make_cache(draft)
    first = extend(draft, cache, tokens[:4], fused[:4], num_held=0)
    second = extend(draft, cache, tokens[4:], fused[4:], num_held=4, positions=positions[4:])

    torch.testing.assert_close(
        reference.hidden(tokens, fused, positions),
        torch.cat((first, second)),
        rtol=1e-4,
        atol=1e-4,
    )


def test_target_ids_are_the_chosen_ids_of_the_target(pair: tuple[Draft, Reference]) -> None:
    draft, reference = pair
    chosen = reference.tensors["t2d"].nonzero()[:, 0]

    assert torch.equal(chosen, draft.target_ids(torch.arange(draft.shape.draft_vocab_size)))


def test_without_a_map_draft_ids_are_target_ids(tmp_path: Path) -> None:
    target_folder = write_target(tmp_path / "target", architecture="llama")
    folder = write_draft(
        tmp_path / "draft",
        target_folder=target_folder,
        draft_vocab_size=320,
        with_vocab_map=False,
    )
    target = load_target(target_plan(target_folder), AUX, CPU)
    draft = load_draft(draft_plan(folder, aux_layer_inputs=AUX), target, CPU)
    ids = torch.arange(320)

    assert torch.equal(ids, draft.target_ids(ids))
