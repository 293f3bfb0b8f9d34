"""Where a step's device work runs: at once, or on a thread of its own while the host goes on."""

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import torch

from specserve.torch_engine.round import Emitted

DeviceWork = Sequence[Callable[[], Emitted | None]]


class Handle(Protocol):
    """Work that was handed over."""

    def result(self) -> list[Emitted]:
        """What its passes emitted, in order. Raises what the work raised."""
        ...


class DeviceQueue(Protocol):
    """Carries out work in the order in which it was handed over."""

    def submit(self, work: DeviceWork) -> Handle:
        """Hand over one step's work."""
        ...

    def close(self) -> None:
        """Finish what was handed over and take no more. Safe to call twice."""
        ...


class InlineQueue:
    """The work is done when `submit` returns."""

    def submit(self, work: DeviceWork) -> Handle:
        """Raises what the work raises."""
        return _Done(_run(work))

    def close(self) -> None:
        """Nothing is ever waiting."""


class ThreadQueue:
    """One thread does the work while the host finishes the step before."""

    def __init__(self) -> None:
        self._executor = ThreadPoolExecutor(max_workers=1, thread_name_prefix="device")

    def submit(self, work: DeviceWork) -> Handle:
        """Return at once."""
        return self._executor.submit(_run, work)

    def close(self) -> None:
        """Wait for the thread to end."""
        self._executor.shutdown(wait=True)


class _Done:
    def __init__(self, emitted: list[Emitted]) -> None:
        self._emitted = emitted

    def result(self) -> list[Emitted]:
        return self._emitted


def open_queue(*, own_thread: bool) -> DeviceQueue:
    """A queue with a thread of its own, or with the caller's."""
    return ThreadQueue() if own_thread else InlineQueue()


@torch.inference_mode()
def _run(work: DeviceWork) -> list[Emitted]:
    return [emitted for item in work if (emitted := item()) is not None]
