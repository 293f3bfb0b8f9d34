"""Training by the wall clock: learning rate, optimiser, and the log line."""

import math
import time
from collections.abc import Iterator
from typing import NamedTuple

import torch
from torch import Tensor, nn

from demo_training.settings import Training


class Progress(NamedTuple):
    """Where a run stands; `done_rate` is 0 … 1 of its minutes."""

    step: int
    done_rate: float


def steps_until(minutes: float) -> Iterator[Progress]:
    """Yield a step at a time until the minutes are over.

    The clock starts after the first step, which compiles. At least two steps are made.
    """
    yield Progress(0, 0.0)
    started, seconds, step = time.monotonic(), max(60 * minutes, 1e-9), 1
    while step < 2 or time.monotonic() - started < seconds:
        yield Progress(step, min(1.0, (time.monotonic() - started) / seconds))
        step += 1


def learning_rate(training: Training, done_rate: float) -> float:
    """Linear warm-up, then a cosine to a hundredth."""
    warm = min(1.0, (done_rate + 1e-3) / training.warmup_rate)
    cosine = 0.5 * (1 + math.cos(math.pi * done_rate))
    return training.learning_rate * warm * max(cosine, 0.01)


class Optimizer:
    """AdamW (decay on matrices only), clipped, with the schedule applied at each step."""

    def __init__(self, model: nn.Module, training: Training) -> None:
        self._parameters = [p for p in model.parameters() if p.requires_grad]
        self._training = training
        matrices = [p for p in self._parameters if p.ndim >= 2]
        vectors = [p for p in self._parameters if p.ndim < 2]
        self._adamw = torch.optim.AdamW(
            [
                {"params": matrices, "weight_decay": training.weight_decay},
                {"params": vectors, "weight_decay": 0.0},
            ],
            betas=(0.9, 0.95),
            fused=self._parameters[0].is_cuda,
        )

    def step(self, loss: Tensor, done_rate: float) -> None:
        """Apply the gradient of `loss`."""
        for group in self._adamw.param_groups:
            group["lr"] = learning_rate(self._training, done_rate)
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self._parameters, 1.0)
        self._adamw.step()
        self._adamw.zero_grad(set_to_none=True)


class Log:
    """A line every few seconds: step, loss, speed, time left."""

    def __init__(self, name: str, training: Training, seconds: float = 10.0) -> None:
        self._name = name
        self._training = training
        self._seconds = seconds
        self._started = self._last = time.monotonic()
        self._last_step = 0

    def show(self, progress: Progress, loss: Tensor, **figures: Tensor) -> None:
        """Print if it is time. Reads the loss, so the device is waited for only then."""
        now = time.monotonic()
        if progress.step > 1 and now - self._last < self._seconds:
            return
        per_step = self._training.batch_size * self._training.sequence_tokens
        speed = (progress.step - self._last_step) * per_step / max(now - self._last, 1e-9)
        left = 60 * self._training.minutes * (1 - progress.done_rate)
        shown = "".join(f"  {name} {_numbers(value)}" for name, value in figures.items())
        print(
            f"{self._name}: step {progress.step}  loss {loss.item():.4f}{shown}  "
            f"{speed:,.0f} tokens/s  {left:.0f} s left",
            flush=True,
        )
        self._last, self._last_step = now, progress.step


def _numbers(value: Tensor) -> str:
    return " ".join(f"{number:.3f}" for number in value.flatten().tolist())
