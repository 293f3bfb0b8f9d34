"""Train the bundled demo pair: a small code model and its EAGLE-3 head, on Python's own library.

    python scripts/train_demo.py all --out build/demo                from this Python's library
    python scripts/train_demo.py pack-corpus build/corpus.tar.xz     for a machine with another
    python scripts/train_demo.py all --corpus build/corpus.tar.xz --out build/demo

The stages `target`, `draft` and `evaluate` can be run one by one: each reads what the one before
left in the output folder.
"""

import argparse
import dataclasses
import json
import sys
import tarfile
import time
from pathlib import Path
from typing import Any

import torch
from demo_training.checkpoint import (
    load_draft,
    load_target,
    save_draft,
    save_target,
    transformers_difference,
)
from demo_training.corpus import Corpus, Document, pack_corpus, read_corpus
from demo_training.draft import train_draft
from demo_training.eagle3 import Draft
from demo_training.evaluation import figures, speculate
from demo_training.generation import own_text
from demo_training.llama import Llama
from demo_training.prompts import held_out_prompts, save_prompts
from demo_training.record import add_figures, machine_record, training_record
from demo_training.settings import FULL, SMOKE, Settings
from demo_training.stream import packed, windows
from demo_training.target import bits_per_byte, held_out_loss, train_target
from demo_training.tokenizer import end_of_text_id, save_tokenizer, train_tokenizer
from tokenizers import Tokenizer

STAGES = ("target", "draft", "evaluate")
# Float32 sums in another order; a wrong norm or rotation is off by orders of magnitude more.
LARGEST_LOGIT_DIFFERENCE = 2e-3


def main() -> None:
    """Run the asked stage, or all of them."""
    arguments = _parser().parse_args()
    if arguments.stage == "pack-corpus":
        size = pack_corpus(arguments.corpus, arguments.out)
        print(f"{arguments.out}: {size:,} bytes")
        return
    settings = _settings(arguments)
    device = torch.device(arguments.device)
    compiled = device.type == "cuda" if arguments.compile is None else arguments.compile
    torch._dynamo.config.recompile_limit = 64  # one entry a layer type, mode and unrolled step
    corpus = read_corpus(arguments.corpus, max_bytes=settings.max_corpus_bytes)
    for stage in STAGES if arguments.stage == "all" else (arguments.stage,):
        started = time.monotonic()
        print(f"== {stage}", flush=True)
        match stage:
            case "target":
                make_target(settings, corpus, arguments.out, device, compiled=compiled)
            case "draft":
                make_draft(settings, corpus, arguments.out, device, compiled=compiled)
            case _:
                evaluate(settings, corpus, arguments.out, device)
        print(f"== {stage} took {time.monotonic() - started:.0f} s", flush=True)
        if arguments.tar is not None:
            _write_tar(arguments.out, arguments.tar)


def make_target(
    settings: Settings, corpus: Corpus, out: Path, device: torch.device, *, compiled: bool
) -> None:
    """Train and save tokenizer, held-out prompts and target."""
    tokenizer = train_tokenizer(
        (document.text for document in corpus.training), settings.shape.vocab_size
    )
    save_tokenizer(tokenizer, out / "target", settings.shape.context_length)
    prompts = held_out_prompts(corpus.held_out, tokenizer, settings.evaluation)
    save_prompts(prompts, out / "held_out_prompts.jsonl")
    training = packed(tokenizer, corpus.training, device)
    held_out = packed(tokenizer, corpus.held_out, device)
    print(
        f"{len(corpus.training)} files, {len(training):,} tokens; held out "
        f"{len(corpus.held_out)} files, {len(held_out):,} tokens, {len(prompts)} prompts"
    )
    target = train_target(settings, training, held_out, compiled=compiled)
    save_target(target, out / "target", end_of_text_id(tokenizer))
    record = training_record(settings, corpus, device, num_training_tokens=len(training))
    add_figures(out, "target_training", record)


def make_draft(
    settings: Settings, corpus: Corpus, out: Path, device: torch.device, *, compiled: bool
) -> None:
    """Train and save the draft for the target as saved."""
    tokenizer = _tokenizer(out)
    target = load_target(out / "target", device)
    training = packed(tokenizer, corpus.training, device)
    generator = torch.Generator().manual_seed(settings.seed)
    text = own_text(target, training, settings.generation, generator)
    draft = train_draft(settings, target, training, text, compiled=compiled)
    save_draft(draft, out / "draft", end_of_text_id(tokenizer))
    record = training_record(
        settings, corpus, device, num_training_tokens=len(training) + text.numel()
    )
    add_figures(out, "draft_training", record)


def evaluate(settings: Settings, corpus: Corpus, out: Path, device: torch.device) -> None:
    """Measure the pair as saved, in float32. Ends with an error if transformers disagrees."""
    tokenizer = _tokenizer(out)
    target = load_target(out / "target", device)
    draft = load_draft(out / "draft", target, device)
    prompts = held_out_prompts(corpus.held_out, tokenizer, settings.evaluation)
    save_prompts(prompts, out / "held_out_prompts.jsonl")
    add_figures(out, "draft", draft_figures(settings, prompts, tokenizer, target, draft))

    held_out = packed(tokenizer, corpus.held_out, device)
    loss = held_out_loss(target, held_out, settings.target.sequence_tokens)
    num_bytes = sum(len(document.text.encode()) for document in corpus.held_out)
    sample = windows(held_out, min(settings.shape.context_length, len(held_out)))[:2]
    difference = transformers_difference(out / "target", target, sample)
    measured = {
        "parameters": num_parameters(target),
        "held_out_loss": loss,
        "held_out_bits_per_byte": bits_per_byte(loss, len(held_out), num_bytes),
        "largest_logit_difference_to_transformers": difference,
    }
    print(json.dumps(measured, indent=2))
    add_figures(out, "target", measured)
    add_figures(out, "evaluated_on", machine_record(device))
    if difference > LARGEST_LOGIT_DIFFERENCE:
        sys.exit(f"the saved target differs from transformers' by {difference:.2e} in a logit")


def draft_figures(
    settings: Settings,
    prompts: list[Document],
    tokenizer: Tokenizer,
    target: Llama,
    draft: Draft,
) -> dict[str, Any]:
    """Speculate on every prompt; prints the first few texts to look at."""
    plan = settings.evaluation
    traces = [
        speculate(
            target,
            draft,
            tokenizer.encode(prompt.text).ids,
            num_steps=plan.num_steps,
            max_new_tokens=plan.max_new_tokens,
            end_id=end_of_text_id(tokenizer),
        )
        for prompt in prompts
    ]
    for prompt, trace in zip(prompts[:4], traces[:4], strict=False):
        print(f"--- {prompt.path}\n{prompt.text}<<<{tokenizer.decode(trace.tokens)}>>>")
    measured = {"parameters": num_parameters(draft), **figures(traces, plan.num_steps)}
    print(json.dumps(measured, indent=2))
    return measured


def num_parameters(model: torch.nn.Module) -> int:
    """Weights of the model itself; what a draft borrows is not counted."""
    return sum(parameter.numel() for parameter in model.parameters())


def _tokenizer(out: Path) -> Tokenizer:
    tokenizer: Tokenizer = Tokenizer.from_file(str(out / "target" / "tokenizer.json"))
    return tokenizer


def _write_tar(out: Path, archive: Path) -> None:
    archive.parent.mkdir(parents=True, exist_ok=True)
    with tarfile.open(archive, "w") as tar:
        for entry in sorted(out.iterdir()):
            tar.add(entry, arcname=entry.name)
    print(f"{archive}: {archive.stat().st_size:,} bytes")


def _settings(arguments: argparse.Namespace) -> Settings:
    settings = FULL if arguments.preset == "full" else SMOKE
    target, draft = settings.target, settings.draft
    if arguments.target_minutes is not None:
        target = dataclasses.replace(target, minutes=arguments.target_minutes)
    if arguments.draft_minutes is not None:
        draft = dataclasses.replace(draft, minutes=arguments.draft_minutes)
    return dataclasses.replace(settings, target=target, draft=draft)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    stages = parser.add_subparsers(dest="stage", required=True)
    pack = stages.add_parser("pack-corpus", help="pack the library's source for another machine")
    pack.add_argument("out", type=Path)
    pack.add_argument("--corpus", type=Path, help="the library's folder (default: this Python's)")
    for stage in ("all", *STAGES):
        one = stages.add_parser(stage)
        one.add_argument("--out", type=Path, required=True, help="folder of the pair")
        one.add_argument("--corpus", type=Path, help="folder or packed archive (default: local)")
        one.add_argument("--preset", choices=("full", "smoke"), default="full")
        one.add_argument("--target-minutes", type=float, help="wall clock of the target's training")
        one.add_argument("--draft-minutes", type=float, help="wall clock of the draft's training")
        one.add_argument("--tar", type=Path, help="also write the folder as one archive")
        one.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
        one.add_argument("--compile", action=argparse.BooleanOptionalAction, help="torch.compile")
    return parser


if __name__ == "__main__":
    main()
