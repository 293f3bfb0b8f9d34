"""Acceptance on held-out prompts, by the plainest loop that can be written.

Nothing is cached and nothing is batched: every round runs both models over the whole text. What
an engine does faster must come to the same tokens and the same counts.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from demo_training.eagle3 import Draft
from demo_training.llama import Llama


@dataclass(frozen=True, slots=True)
class Trace:
    """One greedy continuation; `accepted` counts each round's accepted draft tokens."""

    tokens: tuple[int, ...]
    accepted: tuple[int, ...]


@torch.no_grad()
def speculate(
    target: Llama,
    draft: Draft,
    prompt: Sequence[int],
    *,
    num_steps: int,
    max_new_tokens: int,
    end_id: int,
) -> Trace:
    """Continue `prompt` greedily in rounds of `num_steps` proposals, up to the end token."""
    device = draft.draft_ids.device
    text = list(prompt)
    choices, features = _run(target, text, device)
    text.append(int(choices[-1]))
    accepted: list[int] = []
    while len(text) < len(prompt) + max_new_tokens and end_id not in text[len(prompt) :]:
        # What was rejected is cut off: of each kept token but the last, the feature is known.
        proposals = propose(target, draft, text, features[: len(text) - 1], num_steps)
        choices, features = _run(target, text + proposals, device)
        checked = choices[len(text) - 1 :].tolist()
        num_accepted = 0
        while num_accepted < num_steps and proposals[num_accepted] == checked[num_accepted]:
            num_accepted += 1
        text.extend(checked[: num_accepted + 1])
        accepted.append(num_accepted)
    return Trace(_until(text[len(prompt) :][:max_new_tokens], end_id), tuple(accepted))


def propose(
    target: Llama, draft: Draft, text: list[int], features: Tensor, num_steps: int
) -> list[int]:
    """A chain of proposals for what follows `text`; `features` [T - 1, 3d] of all but its end.

    Entry i of the draft is (feature i, token i + 1). Each proposal is appended as one more
    entry, with the draft's own hidden state as its feature.
    """
    embed = target.model.embed_tokens
    fused, proposals = draft.fc(features), list[int]()
    for _ in range(num_steps):
        entries = torch.tensor(text[1:] + proposals, device=features.device)
        hidden = draft.run(embed(entries)[None], fused[None])[0]
        proposals.append(int(draft.draft_ids[draft.logits(hidden[-1]).argmax()]))
        fused = torch.cat((fused, hidden[-1:]))
    return proposals


def figures(traces: Sequence[Trace], num_steps: int) -> dict[str, Any]:
    """Raw counters and what follows from them. The first token of a text is no round's."""
    rounds = [count for trace in traces for count in trace.accepted]
    at_least = [sum(count >= depth for count in rounds) for depth in range(1, num_steps + 1)]
    reached = [len(rounds), *at_least]
    return {
        "num_prompts": len(traces),
        "num_steps": num_steps,
        "verify_rounds": len(rounds),
        "drafted": num_steps * len(rounds),
        "accepted": sum(rounds),
        "generated": sum(len(trace.tokens) for trace in traces),
        "acceptance_length": 1 + sum(rounds) / max(len(rounds), 1),
        "acceptance_rate": sum(rounds) / max(num_steps * len(rounds), 1),
        "acceptance_rate_by_step": [
            after / max(before, 1) for before, after in zip(reached, at_least, strict=False)
        ],
        "repeated_4gram_rate": repeated_rate([trace.tokens for trace in traces], 4),
    }


def repeated_rate(texts: Sequence[Sequence[int]], length: int) -> float:
    """Share of n-grams that stood earlier in the same text: near 1, a text runs in a loop."""
    total = repeated = 0
    for text in texts:
        grams = [tuple(text[i : i + length]) for i in range(len(text) - length + 1)]
        total += len(grams)
        repeated += len(grams) - len(set(grams))
    return repeated / max(total, 1)


def _run(target: Llama, text: list[int], device: torch.device) -> tuple[Tensor, Tensor]:
    """The target's greedy choice after each token [T], and its aux hidden states [T, 3d]."""
    tokens = torch.tensor([text], device=device)
    output = target(tokens, aux_layer_inputs=target.shape.aux_layer_inputs)
    return output.logits[0].argmax(-1), output.features[0]


def _until(tokens: Sequence[int], end_id: int) -> tuple[int, ...]:
    end = tokens.index(end_id) + 1 if end_id in tokens else len(tokens)
    return tuple(tokens[:end])
