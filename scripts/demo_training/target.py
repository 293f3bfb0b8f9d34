"""Training the target."""

import math

import torch
import torch.nn.functional as F
from torch import Tensor

from demo_training.llama import Llama, initialise
from demo_training.schedule import Log, Optimizer, steps_until
from demo_training.settings import Settings
from demo_training.stream import batches, windows


def train_target(
    settings: Settings, training: Tensor, held_out: Tensor, *, compiled: bool
) -> Llama:
    """Return the trained target in evaluation mode, float32."""
    run, device = settings.target, training.device
    torch.manual_seed(settings.seed)
    model = Llama(settings.shape, run.dropout).to(device)
    initialise(model, settings.shape.num_layers)
    if compiled:
        for layer in model.model.layers:
            layer.compile()
    generator = torch.Generator().manual_seed(settings.seed)
    source = batches(
        training, batch_size=run.batch_size, length=run.sequence_tokens + 1, generator=generator
    )
    optimizer, log = Optimizer(model, run), Log("target", run)
    next_check = 0.25
    for progress in steps_until(run.minutes):
        loss = next_token_loss(model, next(source))
        optimizer.step(loss, progress.done_rate)
        log.show(progress, loss.detach())
        if progress.done_rate >= next_check:
            next_check += 0.25
            loss_there = held_out_loss(model, held_out, run.sequence_tokens)
            print(f"target: held-out loss {loss_there:.4f}", flush=True)
    return model.eval()


def next_token_loss(model: Llama, tokens: Tensor, reduction: str = "mean") -> Tensor:
    """Cross entropy in nats of tokens[:, 1:] given what comes before; bf16 autocast on CUDA."""
    with torch.autocast(tokens.device.type, torch.bfloat16, enabled=tokens.is_cuda):
        logits = model(tokens[:, :-1]).logits
    return F.cross_entropy(
        logits.flatten(0, 1).float(), tokens[:, 1:].flatten(), reduction=reduction
    )


@torch.no_grad()
def held_out_loss(model: Llama, stream: Tensor, length: int) -> float:
    """Nats per token over the whole stream, in windows that start without context."""
    was_training = model.training
    model.eval()
    total, count = 0.0, 0
    for rows in torch.split(windows(stream, length + 1, stride=length), 64):
        total += next_token_loss(model, rows, reduction="sum").item()
        count += rows[:, 1:].numel()
    model.train(was_training)
    return total / count


def bits_per_byte(loss: float, num_tokens: int, num_bytes: int) -> float:
    """Nats per token as bits per byte of the text."""
    return loss * num_tokens / num_bytes / math.log(2)
