"""The shipped pair measured again, by the loop that its figures come from."""

from pathlib import Path

import torch
from demo_training.checkpoint import load_draft, load_target
from demo_training.corpus import Document
from demo_training.evaluation import figures, speculate
from demo_training.prompts import load_prompts
from demo_training.tokenizer import end_of_text_id
from tokenizers import Tokenizer

DEMO = Path(__file__).parents[2] / "specserve" / "demo"


def test_held_out_prompts_come_from_held_out_files() -> None:
    prompts = load_prompts(DEMO / "held_out_prompts.jsonl")

    assert 64 == len(prompts)
    assert all(Document(prompt.path, "").is_held_out for prompt in prompts)


def test_the_acceptance_is_reached_again_on_a_few_prompts() -> None:
    target = load_target(DEMO / "target", torch.device("cpu"))
    draft = load_draft(DEMO / "draft", target, torch.device("cpu"))
    tokenizer = Tokenizer.from_file(str(DEMO / "target" / "tokenizer.json"))

    traces = [
        speculate(
            target,
            draft,
            tokenizer.encode(prompt.text).ids,
            num_steps=3,
            max_new_tokens=40,
            end_id=end_of_text_id(tokenizer),
        )
        for prompt in load_prompts(DEMO / "held_out_prompts.jsonl")[:4]
    ]

    assert figures(traces, 3)["acceptance_length"] >= 2.2
