"""The constructed draft against EAGLE-3's layer written out in full."""

import json
import math
import random
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from torch import Tensor
from transformers import LlamaForCausalLM

from specserve.testing.constructed import ConstructedPair, construct_pair


@pytest.fixture(scope="module", params=[1.0, 0.7, 0.0])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ConstructedPair:
    return construct_pair(tmp_path_factory.mktemp("pair"), p=request.param, seed=3)


class WrittenOutDraft:
    """EAGLE-3's one layer over a whole sequence of entries, after the published names alone."""

    def __init__(self, pair: ConstructedPair) -> None:
        self.config = json.loads((pair.draft_folder / "config.json").read_text())
        self.tensors = {
            name: tensor.float() if tensor.is_floating_point() else tensor
            for name, tensor in load_file(pair.draft_folder / "model.safetensors").items()
        }
        target = load_file(pair.target_folder / "model.safetensors")
        self.embedding = target["model.embed_tokens.weight"].float()

    def linear(self, x: Tensor, name: str) -> Tensor:
        return x @ self.tensors[f"{name}.weight"].T

    def norm(self, x: Tensor, name: str) -> Tensor:
        scaled = x * (x.square().mean(-1, keepdim=True) + self.config["rms_norm_eps"]).rsqrt()
        normed: Tensor = scaled * self.tensors[f"{name}.weight"]
        return normed

    def rotated(self, x: Tensor) -> Tensor:
        """[T, H, D] at positions 0 … T - 1."""
        half = x.shape[-1] // 2
        steps = torch.arange(half) / half
        angles = torch.arange(len(x))[:, None, None] * self.config["rope_theta"] ** -steps
        a, b = x[..., :half], x[..., half:]
        return torch.cat(
            (a * angles.cos() - b * angles.sin(), b * angles.cos() + a * angles.sin()), -1
        )

    def attend(self, x: Tensor) -> Tensor:
        num_heads, num_kv_heads = (
            self.config[key] for key in ("num_attention_heads", "num_key_value_heads")
        )
        q, k, v = (
            self.linear(x, f"midlayer.self_attn.{name}_proj").view(
                len(x), -1, self.config["head_dim"]
            )
            for name in "qkv"
        )
        q, k = self.rotated(q), self.rotated(k)
        heads = []
        for head in range(num_heads):
            shared = head // (num_heads // num_kv_heads)
            scores = q[:, head] @ k[:, shared].T / math.sqrt(self.config["head_dim"])
            scores = scores.masked_fill(torch.ones_like(scores).triu(1).bool(), -torch.inf)
            heads.append(scores.softmax(-1) @ v[:, shared])
        return self.linear(torch.cat(heads, -1), "midlayer.self_attn.o_proj")

    def layer(self, tokens: Sequence[int], fused: Tensor) -> Tensor:
        embedded = self.norm(self.embedding[list(tokens)], "midlayer.input_layernorm")
        x = fused + self.attend(torch.cat((embedded, self.norm(fused, "midlayer.hidden_norm")), -1))
        normed = self.norm(x, "midlayer.post_attention_layernorm")
        gate = torch.nn.functional.silu(self.linear(normed, "midlayer.mlp.gate_proj"))
        return x + self.linear(
            gate * self.linear(normed, "midlayer.mlp.up_proj"), "midlayer.mlp.down_proj"
        )

    def chain(self, text: Sequence[int], features: Tensor, num_steps: int) -> list[int]:
        """`num_steps` proposals for what follows `text`; `features` of all tokens but the last."""
        fused, proposals = self.linear(features, "fc"), list[int]()
        for _ in range(num_steps):
            hidden = self.layer([*text[1:], *proposals], fused)
            draft_id = int(self.linear(self.norm(hidden[-1], "norm"), "lm_head").argmax())
            proposals.append(draft_id + int(self.tensors["d2t"][draft_id]))
            fused = torch.cat((fused, hidden[-1:]))
        return proposals


def test_the_draft_always_proposes_the_next_of_the_cycle(pair: ConstructedPair) -> None:
    """From real aux hidden states of the target, over a long text, for a chain of 6."""
    model, draft = LlamaForCausalLM.from_pretrained(pair.target_folder), WrittenOutDraft(pair)
    aux_inputs = [
        id_ + 1 for id_ in draft.config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
    ]
    first, size = pair.cycle.first_id, pair.cycle.size
    chance = random.Random(2)
    for _ in range(8):
        prompt = [chance.randrange(first + size) for _ in range(5)]
        text = [*prompt, *pair.expected_output(prompt, 70)]
        with torch.no_grad():
            states = model(torch.tensor([text[:-1]]), output_hidden_states=True).hidden_states
        features = torch.cat([states[index][0] for index in aux_inputs], dim=-1)

        expected = [first + (text[-1] - first + step) % size for step in range(1, 7)]
        assert [2, 4, 5] == aux_inputs
        assert expected == draft.chain(text, features, 6)


def test_the_draft_folder_holds_exactly_the_published_tensors(pair: ConstructedPair) -> None:
    tensors = load_file(pair.draft_folder / "model.safetensors")
    layer = ["input_layernorm", "hidden_norm", "post_attention_layernorm"]
    layer += [f"self_attn.{name}_proj" for name in "qkvo"]
    layer += [f"mlp.{name}_proj" for name in ("gate", "up", "down")]

    expected = {"fc.weight", "norm.weight", "lm_head.weight", "d2t", "t2d"}
    assert expected | {f"midlayer.{name}.weight" for name in layer} == set(tensors)


@pytest.mark.parametrize("draft_vocab_size", [200, 300, 512])
def test_the_vocabulary_maps_agree_with_each_other(tmp_path: Path, draft_vocab_size: int) -> None:
    pair = construct_pair(tmp_path, draft_vocab_size=draft_vocab_size)
    tensors = load_file(pair.draft_folder / "model.safetensors")

    target_ids = torch.arange(draft_vocab_size) + tensors["d2t"]
    assert torch.equal(tensors["t2d"].nonzero().flatten(), target_ids)
    assert set(range(257, 457)) <= set(target_ids.tolist())
    assert [258, 259] == WrittenOutDraft(pair).chain([300, 257], _features(pair, 300), 2)


def _features(pair: ConstructedPair, token: int) -> Tensor:
    """The residual stream never leaves the embedding, so three copies of it."""
    return WrittenOutDraft(pair).embedding[[token]].repeat(1, 3)


def test_the_draft_of_a_wider_pair_with_four_kv_heads_is_right_as_well(tmp_path: Path) -> None:
    pair = construct_pair(
        tmp_path,
        vocab_size=2000,
        cycle=1500,
        hidden_size=640,
        num_heads=8,
        num_kv_heads=4,
        head_dim=128,
        context_length=4096,
        p=0.5,
    )

    assert [258, 259, 260] == WrittenOutDraft(pair).chain([1756, 257], _features(pair, 1756), 3)
