import json
from pathlib import Path
from typing import get_args

import pytest
import torch
from safetensors.torch import load_file
from transformers import AutoModelForCausalLM, AutoTokenizer

from specserve.testing.checkpoints import (
    EOS_ID,
    Architecture,
    byte_tokenizer,
    write_draft,
    write_target,
)

TEXTS = [
    "",
    "def f(x):\n    return 'é' + x!!",
    "日本語 🙂\t\r\n",
    "<|endoftext|> inside",
    "\x00\x7f",
]
ARCHITECTURES: tuple[Architecture, ...] = get_args(Architecture)


@pytest.mark.parametrize("architecture", ARCHITECTURES)
@pytest.mark.parametrize("tie_embeddings", [False, True])
def test_greedy_output_of_a_target_varies(
    tmp_path: Path, architecture: Architecture, tie_embeddings: bool
) -> None:
    """Else a test that compares outputs would compare one repeated token."""
    write_target(tmp_path, architecture=architecture, tie_embeddings=tie_embeddings)
    model = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    prompt = torch.arange(40, 60)[None]

    output = model.generate(prompt, max_new_tokens=32, do_sample=False, eos_token_id=None)

    assert len(set(output[0, 20:].tolist())) >= 10


@pytest.mark.parametrize("architecture", ARCHITECTURES)
def test_the_same_seed_gives_the_same_weights(tmp_path: Path, architecture: Architecture) -> None:
    first, same, other = (
        load_file(
            write_target(tmp_path / str(i), architecture=architecture, num_layers=2, seed=seed)
            / "model.safetensors"
        )
        for i, seed in enumerate((3, 3, 4))
    )

    assert all(torch.equal(first[name], same[name]) for name in first)
    assert not any(torch.equal(first[name], other[name]) for name in first)


def test_writing_a_target_leaves_the_global_generator_alone(tmp_path: Path) -> None:
    state = torch.get_rng_state()
    write_target(tmp_path, architecture="llama", num_layers=1)

    assert torch.equal(state, torch.get_rng_state())


@pytest.mark.parametrize("text", TEXTS)
def test_any_text_round_trips_through_the_saved_tokenizer(tmp_path: Path, text: str) -> None:
    byte_tokenizer(400).save_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)

    assert text == tokenizer.decode(tokenizer.encode(text))


@pytest.mark.parametrize("vocab_size", [257, 320, 9093])
def test_the_tokenizer_has_exactly_the_ids_of_the_model(vocab_size: int) -> None:
    tokenizer = byte_tokenizer(vocab_size)

    assert vocab_size == len(tokenizer)
    assert EOS_ID == tokenizer.eos_token_id
    assert all(tokenizer.convert_ids_to_tokens(list(range(vocab_size))))


def test_two_characters_can_be_one_token() -> None:
    assert [257] == byte_tokenizer(258).encode("!!")


@pytest.mark.parametrize("vocab_size", [256, 9094])
def test_an_impossible_vocabulary_is_refused(vocab_size: int) -> None:
    with pytest.raises(ValueError, match=f"vocab_size={vocab_size}: expected 257 to 9093"):
        byte_tokenizer(vocab_size)


def test_the_chat_template_opens_the_answer() -> None:
    chat = [{"role": "user", "content": "hi"}]
    text = byte_tokenizer(257).apply_chat_template(chat, tokenize=False, add_generation_prompt=True)

    assert text == "user: hi\nassistant: "


def test_a_draft_has_the_published_layout(tmp_path: Path) -> None:
    target = write_target(tmp_path / "target", architecture="llama", num_layers=1)
    folder = write_draft(tmp_path / "draft", target_folder=target, aux_layer_ids=(1, 3, 4))
    tensors = load_file(folder / "model.safetensors")
    config = json.loads((folder / "config.json").read_text())

    assert ["LlamaForCausalLMEagle3"] == config["architectures"]
    assert [1, 3, 4] == config["eagle_config"]["eagle_aux_hidden_state_layer_ids"]
    assert (64, 3 * 64) == tuple(tensors["fc.weight"].shape)
    assert (64, 2 * 64) == tuple(tensors["midlayer.self_attn.q_proj.weight"].shape)
    assert (128, 64) == tuple(tensors["lm_head.weight"].shape)
    chosen = tensors["d2t"] + torch.arange(128)
    assert torch.equal(tensors["t2d"].nonzero()[:, 0], chosen)
    assert "embed_tokens.weight" not in tensors
