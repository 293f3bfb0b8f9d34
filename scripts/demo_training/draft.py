"""Training the draft by EAGLE-3's training-time test: it lives with its own hidden states."""

from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor

from demo_training.eagle3 import Draft
from demo_training.llama import Llama, initialise
from demo_training.schedule import Log, Optimizer, steps_until
from demo_training.settings import Settings
from demo_training.stream import batches


class StepLosses(NamedTuple):
    """[S] each: soft-label loss, and how often the draft's first choice is the target's."""

    loss: Tensor
    accuracy: Tensor


def most_frequent_ids(own_text: Tensor, vocab_size: int, draft_vocab_size: int) -> Tensor:
    """The target's most frequent ids in ascending order, [draft_vocab_size]."""
    counts = own_text.flatten().bincount(minlength=vocab_size)
    return counts.argsort(descending=True, stable=True)[:draft_vocab_size].sort().values


def train_draft(
    settings: Settings, target: Llama, training: Tensor, own_text: Tensor, *, compiled: bool
) -> Draft:
    """Return the trained draft in evaluation mode, float32."""
    run, shape, device = settings.draft, settings.shape, training.device
    torch.manual_seed(settings.seed + 1)
    draft_ids = most_frequent_ids(own_text, shape.vocab_size, settings.draft_vocab_size)
    draft = Draft(shape, draft_ids).to(device)
    initialise(draft, 1)
    with torch.no_grad():
        draft.lm_head.weight.copy_(target.model.embed_tokens.weight[draft_ids])
    if compiled:
        for layer in (*target.model.layers, draft.midlayer):
            layer.compile()
    source = _mixed_batches(settings, training, own_text)
    weights = settings.step_weight ** torch.arange(settings.num_unrolled_steps, device=device)
    optimizer, log = Optimizer(draft, run), Log("draft", run)
    for progress in steps_until(run.minutes):
        losses = step_losses(target, draft, next(source), settings.num_unrolled_steps)
        loss = (weights * losses.loss).sum() / weights.sum()
        optimizer.step(loss, progress.done_rate)
        log.show(progress, loss.detach(), accuracy=losses.accuracy)
    return draft.eval()


def step_losses(target: Llama, draft: Draft, tokens: Tensor, num_steps: int) -> StepLosses:
    """Losses of every unrolled step on [B, T] tokens.

    A label is the target's distribution over the draft vocabulary; positions at which the
    target's first choice is not in that vocabulary are left out: no proposal can be right there.
    """
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=tokens.is_cuda):
        with torch.no_grad():
            taught = target(tokens, aux_layer_inputs=target.shape.aux_layer_inputs)
            embedded = target.model.embed_tokens(tokens)
        outputs = draft.unroll(embedded, taught.features, num_steps)
        proposals = [draft.logits(hidden).float() for hidden in outputs]
    choices = taught.logits.argmax(-1)
    labels = taught.logits[..., draft.draft_ids].float().softmax(-1)
    is_proposable = torch.isin(choices, draft.draft_ids)
    losses, accuracies = [], []
    for step, logits in enumerate(proposals):
        span = slice(step + 1, step + 1 + logits.shape[1])
        entropy = -(labels[:, span] * logits.log_softmax(-1)).sum(-1)
        mask = is_proposable[:, span]
        losses.append((entropy * mask).sum() / mask.sum().clamp(min=1))
        proposed = draft.draft_ids[logits.argmax(-1)]
        accuracies.append((proposed == choices[:, span]).float().mean())
    return StepLosses(torch.stack(losses), torch.stack(accuracies))


def _mixed_batches(settings: Settings, training: Tensor, own_text: Tensor) -> Iterator[Tensor]:
    """Three quarters the target's own text, a quarter the corpus."""
    run = settings.draft
    num_own = run.batch_size * 3 // 4
    generator = torch.Generator().manual_seed(settings.seed + 1)
    source = batches(
        training,
        batch_size=run.batch_size - num_own,
        length=run.sequence_tokens,
        generator=generator,
    )
    while True:
        order = torch.randperm(len(own_text), generator=generator).to(own_text.device)
        for rows in torch.split(order, num_own):
            if len(rows) == num_own:
                yield torch.cat((own_text[rows], next(source)))
