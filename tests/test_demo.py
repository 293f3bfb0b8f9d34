"""The pair that ships: complete, small, in the published layout, with figures that are stated."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file
from tokenizers import Tokenizer
from transformers import AutoModelForCausalLM, AutoTokenizer

DEMO = Path(__file__).parents[1] / "specserve" / "demo"


def read_json(name: str) -> dict[str, Any]:
    content: dict[str, Any] = json.loads((DEMO / name).read_text())
    return content


@pytest.fixture(scope="module")
def draft() -> dict[str, torch.Tensor]:
    return load_file(DEMO / "draft" / "model.safetensors")


def test_it_weighs_at_most_14_mb() -> None:
    assert sum(file.stat().st_size for file in DEMO.rglob("*") if file.is_file()) <= 14_000_000


def test_transformers_loads_the_target_and_continues_code() -> None:
    model = AutoModelForCausalLM.from_pretrained(DEMO / "target", dtype=torch.float32)
    tokenizer = AutoTokenizer.from_pretrained(DEMO / "target")
    prompt = tokenizer("import unittest\n\nclass TestCase(", return_tensors="pt")

    output = model.generate(**prompt, max_new_tokens=8, do_sample=False)

    text = str(tokenizer.decode(output[0, prompt["input_ids"].shape[1] :]))
    assert text.startswith("unittest.TestCase):\n")
    assert read_json("figures.json")["target"]["parameters"] == model.num_parameters()


def test_the_weights_are_finite() -> None:
    for file in DEMO.rglob("*.safetensors"):
        broken = [
            name
            for name, tensor in load_file(file).items()
            if tensor.is_floating_point() and not bool(tensor.isfinite().all())
        ]
        assert [] == broken, file


def test_every_id_of_the_target_has_a_text() -> None:
    tokenizer = Tokenizer.from_file(str(DEMO / "target" / "tokenizer.json"))
    config = read_json("target/config.json")

    assert config["vocab_size"] == tokenizer.get_vocab_size()
    assert config["eos_token_id"] == tokenizer.token_to_id("<|endoftext|>")
    assert config["eos_token_id"] == read_json("target/generation_config.json")["eos_token_id"]


def test_the_draft_is_in_the_published_layout(draft: dict[str, torch.Tensor]) -> None:
    hidden, inner, heads, kv = 192, 512, 6 * 32, 3 * 32

    expected = {
        "fc.weight": (hidden, 3 * hidden),
        "midlayer.input_layernorm.weight": (hidden,),
        "midlayer.hidden_norm.weight": (hidden,),
        "midlayer.post_attention_layernorm.weight": (hidden,),
        "midlayer.self_attn.q_proj.weight": (heads, 2 * hidden),
        "midlayer.self_attn.k_proj.weight": (kv, 2 * hidden),
        "midlayer.self_attn.v_proj.weight": (kv, 2 * hidden),
        "midlayer.self_attn.o_proj.weight": (hidden, heads),
        "midlayer.mlp.gate_proj.weight": (inner, hidden),
        "midlayer.mlp.up_proj.weight": (inner, hidden),
        "midlayer.mlp.down_proj.weight": (hidden, inner),
        "norm.weight": (hidden,),
        "lm_head.weight": (1024, hidden),
        "d2t": (1024,),
        "t2d": (2048,),
    }
    assert expected == {name: tuple(tensor.shape) for name, tensor in draft.items()}


def test_the_vocabulary_maps_agree(draft: dict[str, torch.Tensor]) -> None:
    target_ids = torch.arange(1024) + draft["d2t"]

    assert target_ids.tolist() == draft["t2d"].nonzero().flatten().tolist()
    assert (torch.int64, torch.bool) == (draft["d2t"].dtype, draft["t2d"].dtype)


def test_the_aux_layers_are_those_that_engines_guess() -> None:
    """The published key counts by outputs: what layer 2 takes in is what layer 1 puts out."""
    num_layers = read_json("target/config.json")["num_hidden_layers"]
    outputs = read_json("draft/config.json")["eagle_config"]["eagle_aux_hidden_state_layer_ids"]

    assert [2, num_layers // 2, num_layers - 3] == [id_ + 1 for id_ in outputs]


def test_the_recorded_acceptance_is_what_was_wanted() -> None:
    figures = read_json("figures.json")["draft"]

    assert figures["acceptance_length"] >= 2.2
    assert (64, 3) == (figures["num_prompts"], figures["num_steps"])
    assert figures["drafted"] == 3 * figures["verify_rounds"]
    assert (
        pytest.approx(1 + figures["accepted"] / figures["verify_rounds"])
        == (figures["acceptance_length"])
    )


def test_the_model_card_states_the_recorded_figures() -> None:
    card, figures = (DEMO / "MODEL_CARD.md").read_text(), read_json("figures.json")
    target, draft = figures["target"], figures["draft"]
    stated = dict(re.findall(r"^\| (.+?) \| (.+?) \|$", card, flags=re.MULTILINE))

    assert f"{target['parameters']:,}" == stated["target parameters"]
    assert f"{draft['parameters']:,}" == stated["draft parameters"]
    assert f"{target['held_out_loss']:.3f}" == stated["held-out loss, nats per token"]
    assert f"{target['held_out_bits_per_byte']:.3f}" == stated["held-out bits per byte"]
    assert f"{draft['acceptance_length']:.3f}" == stated["acceptance length"]
    assert f"{draft['acceptance_rate']:.3f}" == stated["acceptance rate"]
    assert f"{draft['repeated_4gram_rate']:.2f}" == stated["repeated 4-grams in the output"]
    by_step = " / ".join(f"{rate:.3f}" for rate in draft["acceptance_rate_by_step"])
    assert by_step == stated["acceptance rate of step 1 / 2 / 3, given the steps before"]
