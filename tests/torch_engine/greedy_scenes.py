"""Requests and what `transformers` makes of them, for drafts of every worth.

The targets read their context: a wrong key or value in a cache changes what they say. Nothing of
the expected outputs comes from the engine, neither the tokens nor where they end.
"""

import random
import shutil
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple

import torch
from safetensors.torch import load_file, save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase

from specserve.engine import GenerationRequest
from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.constructed import construct_pair
from specserve.testing.loops import Generated, make_request

Worth = Literal["perfect", "good", "unrelated", "wrong"]
WORTHS: tuple[Worth, ...] = ("perfect", "good", "unrelated", "wrong")

_LONGEST = 24


class Expected(NamedTuple):
    """All that a client gets of a request."""

    token_ids: tuple[int, ...]
    text: str
    finish_reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scene:
    """A pair, requests for it that end in every way, and what plain greedy decoding answers."""

    target_folder: Path
    draft_folder: Path
    eos_token_ids: tuple[int, ...]
    requests: tuple[GenerationRequest, ...]
    expected: tuple[Expected, ...]


class Greedy:
    """Plain greedy decoding by `transformers`, each prompt on its own."""

    def __init__(self, target_folder: Path) -> None:
        self._model: Any = AutoModelForCausalLM.from_pretrained(target_folder)
        self._tokenizer: PreTrainedTokenizerBase = AutoTokenizer.from_pretrained(target_folder)

    def tokens(self, prompt: Sequence[int], num_tokens: int) -> tuple[int, ...]:
        """The continuation, whatever ends it."""
        ids = torch.tensor([prompt])
        output = self._model.generate(
            ids,
            attention_mask=torch.ones_like(ids),
            max_new_tokens=num_tokens,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        return tuple(output[0, len(prompt) :].tolist())

    def text(self, token_ids: Sequence[int]) -> str:
        """What the tokens read together."""
        return str(self._tokenizer.decode(list(token_ids), skip_special_tokens=True))

    def answer(self, request: GenerationRequest, eos_token_ids: Sequence[int]) -> Expected:
        """The continuation up to where it ends."""
        tokens = self.tokens(request.prompt_token_ids, request.max_tokens)
        return self.ended(tokens, request, eos_token_ids)

    def ended(
        self, tokens: Sequence[int], request: GenerationRequest, eos_token_ids: Sequence[int]
    ) -> Expected:
        """A continuation of the request, looked at token by token: the first ending counts."""
        ends = {*request.stop_token_ids, *(() if request.ignore_eos else eos_token_ids)}
        for count in range(1, request.max_tokens + 1):
            kept = tuple(tokens[:count])
            if kept[-1] in ends:
                return Expected(kept, self.text(kept[:-1]), "stop")
            text = self.text(kept)
            found = [text.index(stop) for stop in request.stop if stop in text]
            if found:
                return Expected(kept, text[: min(found)], "stop")
        return Expected(kept, text, "length")


def received(outputs: Sequence[Generated]) -> tuple[Expected, ...]:
    """The same of what an engine gave."""
    return tuple(
        Expected(output.token_ids, output.text, str(output.finish_reason)) for output in outputs
    )


def num_cut_off(output: Generated) -> int:
    """Tokens behind its end that had been verified with it: more than 0 for an end within a run."""
    counters = output.counters
    num_verified = 1 + counters.accepted + counters.verify_rounds + counters.plain_steps
    return num_verified - len(output.token_ids)


def write_scene(folder: Path, worth: Worth) -> Scene:
    """A pair whose draft is worth that much, with its requests and their answers."""
    target, draft = write_pair(folder, worth)
    greedy = Greedy(target)
    requests, eos_token_ids = _requests(greedy)
    expected = tuple(greedy.answer(request, eos_token_ids) for request in requests)
    if worth == "wrong":
        _propose_only_unsaid(draft, {token for one in expected for token in one.token_ids})
    return Scene(
        target_folder=target,
        draft_folder=draft,
        eos_token_ids=eos_token_ids,
        requests=requests,
        expected=expected,
    )


def write_late_draft(folder: Path, perfect_draft: Path, rank: int) -> Path:
    """A constructed perfect draft, changed so that its `rank`-th choice is the right one.

    The head's rows are in the order of the cycle: the row of the token j places behind the right
    one gets, more strongly, what the right one's row holds.
    """
    shutil.copytree(perfect_draft, folder)
    tensors = load_file(folder / "model.safetensors")
    head = tensors["lm_head.weight"]
    tensors["lm_head.weight"] = head + sum(
        (1 + 0.3 * j) * head.roll(j, dims=0) for j in range(1, rank)
    )
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def write_pair(folder: Path, worth: Worth) -> tuple[Path, Path]:
    """Target and draft; a "wrong" draft is only unrelated yet."""
    match worth:
        case "perfect":
            # So many tokens have orthogonal embeddings.
            pair = construct_pair(folder, p=1.0, cycle=65)
            return pair.target_folder, pair.draft_folder
        case "good":
            pair = construct_pair(folder, p=1.0)
            return _swayed(pair.target_folder), pair.draft_folder
        case "unrelated" | "wrong":
            target = write_target(folder / "target", architecture="llama")
            head = write_draft(folder / "draft", target_folder=target, draft_vocab_size=96)
            return target, head


def _swayed(target_folder: Path) -> Path:
    """A constructed target that no longer follows its cycle alone, but is swayed by its context.

    Its layers, which added nothing, now add noise that depends on all tokens before. So the draft
    of the pair, which knows of none of this, is often right and often wrong.
    """
    folder = shutil.copytree(target_folder, target_folder.with_name("swayed"))
    tensors = load_file(folder / "model.safetensors")
    generator = torch.Generator().manual_seed(0)
    for name, tensor in tensors.items():
        if name.endswith(("o_proj.weight", "down_proj.weight")):
            noise = torch.randn(tensor.shape, generator=generator)
            tensors[name] = 0.6 * noise / tensor.shape[1] ** 0.5
        elif name.endswith("q_proj.weight"):
            tensors[name] = 4 * tensor  # attention that looks at few tokens, not at their average
    save_file(tensors, folder / "model.safetensors", metadata={"format": "pt"})
    return folder


def _propose_only_unsaid(draft_folder: Path, said: set[int]) -> None:
    """Give a head a vocabulary of tokens that the target never says."""
    tensors = load_file(draft_folder / "model.safetensors")
    mask = torch.ones_like(tensors["t2d"])
    mask[sorted(said)] = False
    draft_ids = mask.nonzero().flatten()[: len(tensors["d2t"])]
    tensors["d2t"] = draft_ids - torch.arange(len(draft_ids))
    tensors["t2d"] = torch.zeros_like(mask).index_fill_(0, draft_ids, True)
    save_file(tensors, draft_folder / "model.safetensors", metadata={"format": "pt"})


def _requests(greedy: Greedy) -> tuple[tuple[GenerationRequest, ...], tuple[int, ...]]:
    """Long and short prompts, long and short outputs, every kind of end; and the end tokens."""
    chance = random.Random(0)
    prompts = [
        # Ids from 257 on are whole characters in both tokenizers.
        [chance.randrange(257, 320) for _ in range(length)]
        for length in (70, 1, 17, 33, 5, 2, 48)
    ]
    to_eos, to_own, to_stop = (greedy.tokens(prompts[i], _LONGEST) for i in (2, 3, 4))
    stop = _first_said_halfway(greedy.text(to_stop))
    requests = [
        make_request(prompts[0], max_tokens=_LONGEST),
        make_request(prompts[1], max_tokens=1),
        make_request(prompts[2], max_tokens=_LONGEST),
        make_request(prompts[3], max_tokens=_LONGEST, stop_token_ids=(to_own[12],)),
        make_request(prompts[4], max_tokens=_LONGEST, stop=("never", stop)),
        make_request(prompts[5], max_tokens=15),
        make_request(prompts[6], max_tokens=8),
    ]
    named = [
        replace(request, request_id=str(index), ignore_eos=index != 2)
        for index, request in enumerate(requests)
    ]
    return tuple(named), (to_eos[10],)


def _first_said_halfway(text: str) -> str:
    """A short piece that the text does not hold before its middle, of whole characters."""
    for start in range(len(text) // 2, len(text)):
        for end in range(start + 1, start + 6):
            piece = text[start:end]
            if "\ufffd" not in piece and text.index(piece) == start:
                return piece
    raise ValueError(f"{text!r} says nothing new in its second half")
