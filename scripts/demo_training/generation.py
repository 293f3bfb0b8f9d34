"""The target's own text: what a draft sees when it serves."""

import copy

import torch
from torch import Tensor

from demo_training.llama import Llama
from demo_training.settings import Generation


@torch.no_grad()
def own_text(
    target: Llama, stream: Tensor, settings: Generation, generator: torch.Generator
) -> Tensor:
    """Return [num_sequences, sequence_tokens] ids: a prompt from the stream and its continuation.

    Half of the sequences are greedy throughout, a quarter are greedy after a sampled lead-in
    (which leads away from what the target knows by heart), a quarter are sampled.
    """
    model = copy.deepcopy(target).to(torch.bfloat16) if stream.is_cuda else target
    sequences = []
    for start in range(0, settings.num_sequences, settings.batch_size):
        num_rows = min(settings.batch_size, settings.num_sequences - start)
        prompts = _prompts(stream, num_rows, settings.prompt_tokens, generator)
        sequences.append(_continue(model, prompts, _num_sampled(num_rows, settings), settings))
        print(f"generation: {start + num_rows} of {settings.num_sequences}", flush=True)
    return torch.cat(sequences)


def _prompts(stream: Tensor, num_rows: int, length: int, generator: torch.Generator) -> Tensor:
    starts = torch.randint(len(stream) - length, (num_rows,), generator=generator)
    offsets = starts[:, None] + torch.arange(length)
    return stream[offsets.to(stream.device)]


def _num_sampled(num_rows: int, settings: Generation) -> Tensor:
    """How many tokens each row samples before it goes on greedily, [B]."""
    choices = torch.tensor([0, 0, settings.lead_in_tokens, settings.sequence_tokens])
    return choices[torch.arange(num_rows) % len(choices)]


def _continue(model: Llama, prompts: Tensor, num_sampled: Tensor, settings: Generation) -> Tensor:
    num_rows, num_tokens = prompts.shape
    num_sampled = num_sampled.to(prompts.device)
    cache = model.empty_cache(num_rows, settings.sequence_tokens)
    columns = [prompts]
    logits = model(prompts, cache=cache).logits[:, -1]
    for index in range(settings.sequence_tokens - num_tokens):
        sampled = torch.multinomial(logits.float().softmax(-1), 1)
        greedy = logits.argmax(-1, keepdim=True)
        column = torch.where(index < num_sampled[:, None], sampled, greedy)
        columns.append(column)
        logits = model(column, cache=cache, start=num_tokens + index).logits[:, -1]
    return torch.cat(columns, dim=1)
