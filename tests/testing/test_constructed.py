"""The constructed target against `transformers`, and what the pair promises as a whole."""

import json
import random
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file
from transformers import LlamaForCausalLM

from specserve.testing.constructed import ConstructedPair, construct_pair, load_pair

ROOT = Path(__file__).parents[2]
NUM_PROMPTS = 24


@pytest.fixture(scope="module", params=[1.0, 0.7, 0.0])
def pair(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> ConstructedPair:
    return construct_pair(tmp_path_factory.mktemp("pair"), p=request.param, seed=3)


def random_prompts(pair: ConstructedPair, length: int, seed: int) -> list[list[int]]:
    chance = random.Random(seed)
    vocab_size = pair.cycle.first_id + pair.cycle.size
    return [[chance.randrange(vocab_size) for _ in range(length)] for _ in range(NUM_PROMPTS)]


def greedy(folder: Path, prompts: Sequence[Sequence[int]], num_tokens: int) -> list[list[int]]:
    model = LlamaForCausalLM.from_pretrained(folder, dtype="auto")
    tokens = torch.tensor(prompts)
    output = model.generate(
        tokens,
        attention_mask=torch.ones_like(tokens),
        max_new_tokens=num_tokens,
        do_sample=False,
    )
    continuations: list[list[int]] = output[:, tokens.shape[1] :].tolist()
    return continuations


def test_transformers_generates_the_expected_output(pair: ConstructedPair) -> None:
    prompts = random_prompts(pair, 7, seed=1)

    expected = [list(pair.expected_output(prompt, 60)) for prompt in prompts]
    assert expected == greedy(pair.target_folder, prompts, 60)


@pytest.mark.parametrize("length", [1, 2, 100])
def test_the_prompt_length_does_not_matter(pair: ConstructedPair, length: int) -> None:
    prompts = random_prompts(pair, length, seed=length)

    expected = [list(pair.expected_output(prompt, 8)) for prompt in prompts]
    assert expected == greedy(pair.target_folder, prompts, 8)


def test_the_target_ends_where_the_end_token_lies_on_the_cycle(tmp_path: Path) -> None:
    pair = construct_pair(tmp_path, p=0.7, eos_position=40)
    prompts = [[257 + position] for position in range(40)]

    for prompt in prompts[::8]:
        expected = list(pair.expected_output(prompt, 200))
        assert 297 == expected[-1]
        assert [expected] == greedy(pair.target_folder, [prompt], 200)


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
def test_rounded_weights_say_the_same(tmp_path: Path, dtype: str) -> None:
    pair = construct_pair(tmp_path, dtype=dtype, p=0.7)  # type: ignore[arg-type]
    prompts = random_prompts(pair, 5, seed=4)

    expected = [list(pair.expected_output(prompt, 40)) for prompt in prompts]
    assert (
        getattr(torch, dtype)
        == load_file(pair.draft_folder / "model.safetensors")["fc.weight"].dtype
    )
    assert expected == greedy(pair.target_folder, prompts, 40)


def test_a_wider_pair_of_another_shape_works_as_well(tmp_path: Path) -> None:
    pair = construct_pair(
        tmp_path,
        vocab_size=2000,
        cycle=1500,
        num_layers=10,
        hidden_size=640,
        num_heads=8,
        num_kv_heads=4,
        head_dim=128,
        context_length=4096,
        p=0.5,
    )
    prompts = random_prompts(pair, 3, seed=5)[:4]

    expected = [list(pair.expected_output(prompt, 12)) for prompt in prompts]
    assert expected == greedy(pair.target_folder, prompts, 12)


def test_a_pair_is_the_same_again_from_its_folder_and_its_seed(tmp_path: Path) -> None:
    pair = construct_pair(tmp_path / "one", seed=9)
    again = construct_pair(tmp_path / "two", seed=9)
    other = construct_pair(tmp_path / "three", seed=10)

    assert pair == load_pair(tmp_path / "one")
    assert pair.cycle == again.cycle
    assert pair.cycle != other.cycle
    for folder in ("target", "draft"):
        file = f"{folder}/model.safetensors"
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"vocab_size": 400}, r"vocab_size=400: expected at least 457"),
        ({"draft_vocab_size": 100}, r"draft_vocab_size=100: expected 200 \(the cycle\)"),
        ({"num_layers": 7}, r"num_layers=7: expected at least 8"),
        ({"num_heads": 3}, r"num_heads=3: expected a multiple of num_kv_heads=2"),
        ({"p": 1.5}, r"p=1.5: expected 0 to 1"),
        ({"cycle": 4}, r"cycle=4: expected at least 8"),
        ({"eos_position": 200}, r"eos_position=200: expected 0 to 199"),
        ({"p": 0.99}, r"use p=1.0, p=0.985 or less, or a longer cycle"),
        (
            {"head_dim": 8, "num_heads": 8, "num_kv_heads": 8},
            r"head_dim=8 with context_length=1024",
        ),
        (
            {"cycle": 4000, "vocab_size": 4300},
            r"cycle=4000 with 32 frequencies: .* a shorter cycle",
        ),
    ],
)
def test_sizes_that_cannot_hold_it_are_refused_by_name(
    tmp_path: Path, arguments: dict[str, int], message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        construct_pair(tmp_path, **arguments)  # type: ignore[arg-type]


def test_the_script_takes_the_shape_of_a_model(tmp_path: Path) -> None:
    like = tmp_path / "config.json"
    shape = {
        "vocab_size": 600,
        "num_hidden_layers": 9,
        "hidden_size": 160,
        "intermediate_size": 96,
        "num_attention_heads": 5,
        "num_key_value_heads": 5,
        "max_position_embeddings": 300,
    }
    like.write_text(json.dumps(shape))

    done = subprocess.run(
        [
            *(sys.executable, "scripts/construct_pair.py", str(tmp_path / "pair")),
            *("--like", str(like), "--p", "0.5", "--num-kv-heads", "1", "--cycle", "60"),
        ],
        cwd=ROOT,
        env={"PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )

    assert 0 == done.returncode, done.stderr
    assert "num_steps=3: expected acceptance length 1.875" in done.stdout
    written = json.loads((tmp_path / "pair" / "target" / "config.json").read_text())
    assert shape | {"num_key_value_heads": 1, "head_dim": 32} == {
        key: written[key] for key in [*shape, "head_dim"]
    }
