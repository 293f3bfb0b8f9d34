"""Real SGLang on the CPU is a fixture worth trusting: exact output, and the known acceptance."""

import json
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedModel

from specserve.testing.constructed import ConstructedPair
from tests.sglang_engine.cpu_sglang import (
    DEMO,
    NUM_STEPS,
    SGLangServer,
    plain_arguments,
    sglang_server,
)

pytestmark = [
    pytest.mark.timeout(600),  # the first test of each server starts it
    pytest.mark.xdist_group("sglang"),
]

NUM_PROMPTS = 12
NUM_TOKENS = 48


@pytest.fixture(scope="module")
def prompts() -> list[list[int]]:
    """The held-out prompts that the bundled draft's acceptance was measured on."""
    tokenizer = AutoTokenizer.from_pretrained(DEMO / "target")
    lines = (DEMO / "held_out_prompts.jsonl").read_text().splitlines()
    return [tokenizer(json.loads(line)["prompt"])["input_ids"] for line in lines]


@pytest.fixture(scope="module")
def transformers_output(prompts: list[list[int]]) -> list[list[int]]:
    """What plain greedy decoding says after the first prompts."""
    model = AutoModelForCausalLM.from_pretrained(DEMO / "target", dtype=torch.float32)
    return [greedy(model, prompt) for prompt in prompts[:NUM_PROMPTS]]


def test_plain_decoding_equals_transformers(
    plain_demo: SGLangServer, prompts: list[list[int]], transformers_output: list[list[int]]
) -> None:
    answers = plain_demo.generate(prompts[:NUM_PROMPTS], max_new_tokens=NUM_TOKENS)

    assert transformers_output == [answer["output_ids"] for answer in answers]
    assert not any("spec_verify_ct" in answer["meta_info"] for answer in answers)


def test_a_chain_of_three_equals_transformers(
    eagle3_demo: SGLangServer, prompts: list[list[int]], transformers_output: list[list[int]]
) -> None:
    """Several at once, and one alone."""
    together = eagle3_demo.generate(prompts[:NUM_PROMPTS], max_new_tokens=NUM_TOKENS)
    alone = eagle3_demo.generate(prompts[:1], max_new_tokens=NUM_TOKENS)

    assert transformers_output == [answer["output_ids"] for answer in together]
    assert transformers_output[:1] == [answer["output_ids"] for answer in alone]


def test_the_bundled_draft_is_accepted_as_often_as_on_the_torch_engine(
    eagle3_demo: SGLangServer, prompts: list[list[int]]
) -> None:
    """The same figure from the same prompts; texts end a little differently."""
    recorded = json.loads((DEMO / "figures.json").read_text())["draft"]

    answers = eagle3_demo.generate(prompts, max_new_tokens=128)

    assert NUM_STEPS == recorded["num_steps"]
    assert recorded["acceptance_length"] == pytest.approx(acceptance_length(answers), rel=0.02)
    assert recorded["acceptance_length"] == pytest.approx(reported_length(eagle3_demo), rel=0.05)


def test_the_constructed_pair_says_and_accepts_what_was_computed(
    eagle3_constructed: SGLangServer, constructed_pair: ConstructedPair
) -> None:
    first = constructed_pair.cycle.first_id
    starts = [[first + offset] for offset in range(0, 200, 20)]

    answers = eagle3_constructed.generate(starts, max_new_tokens=100)

    assert [list(constructed_pair.expected_output(start, 100)) for start in starts] == [
        answer["output_ids"] for answer in answers
    ]
    assert [
        sum(constructed_pair.expected_accepted(start, num_rounds(answer), NUM_STEPS))
        for start, answer in zip(starts, answers, strict=True)
    ] == [answer["meta_info"]["spec_num_correct_drafts"] for answer in answers]


def test_effective_settings_are_reported(eagle3_demo: SGLangServer) -> None:
    info = eagle3_demo.info()

    assert ("0.5.23", "EAGLE3", "intel_amx") == (
        info["version"],
        info["speculative_algorithm"],
        info["attention_backend"],
    )
    assert [NUM_STEPS + 1] == [
        state["speculative_num_draft_tokens"] for state in info["internal_states"]
    ]


def test_a_server_that_cannot_start_shows_the_end_of_its_log(
    sglang_installed: None, tmp_path: Path
) -> None:
    arguments = plain_arguments(tmp_path / "absent")

    with (
        pytest.raises(RuntimeError, match=r"exit status [1-9-].*\n(.*\n)*.*absent"),
        sglang_server(arguments, tmp_path / "log.txt"),
    ):
        pass


def greedy(model: PreTrainedModel, prompt: list[int]) -> list[int]:
    ids = torch.tensor([prompt])
    for _ in range(NUM_TOKENS):
        ids = torch.cat([ids, model(ids).logits[:, -1:].argmax(-1)], dim=1)
    return [int(token) for token in ids[0, len(prompt) :]]


def num_rounds(answer: dict[str, Any]) -> int:
    return int(answer["meta_info"]["spec_verify_ct"])


def acceptance_length(answers: list[dict[str, Any]]) -> float:
    """Tokens per verify round, bonus token included."""
    accepted = sum(int(answer["meta_info"]["spec_num_correct_drafts"]) for answer in answers)
    return 1 + accepted / sum(num_rounds(answer) for answer in answers)


def reported_length(server: SGLangServer) -> float:
    """The server's own running average."""
    (state,) = server.info()["internal_states"]
    return float(state["avg_spec_accept_length"])
