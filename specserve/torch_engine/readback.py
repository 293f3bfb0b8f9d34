"""Results on their way from the device to the host."""

import torch
from torch import Tensor


class Readback:
    """Copies tensors to the host behind the work that makes them, without waiting for it.

    A later `tolist` on a GPU tensor would wait for everything launched since; this waits for no
    more than what was asked for.
    """

    def __init__(self, tensors: tuple[Tensor, ...]) -> None:
        if not tensors[0].is_cuda:
            self._tensors, self._event = tensors, None
            return
        self._tensors = tuple(
            torch.empty_like(tensor, device="cpu", pin_memory=True).copy_(tensor, non_blocking=True)
            for tensor in tensors
        )
        self._event = torch.cuda.Event()  # type: ignore[no-untyped-call]
        self._event.record()

    def wait(self) -> tuple[Tensor, ...]:
        """The tensors on the host, once they are there."""
        if self._event is not None:
            self._event.synchronize()
        return self._tensors
