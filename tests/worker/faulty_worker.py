"""A worker process with one fault: `faulty_worker.py KIND FAULT PHASE --fd N`.

The fault takes the place of one phase's step, whether that phase is run or skipped. KIND is
`torch`, the real worker, or `scripted`, which starts in a fraction of the time.
"""

import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from specserve.worker.phases import Phase, PhaseRunner
from tests.worker.scripted_worker import main as scripted_main

T = TypeVar("T")


class FaultyRunner(PhaseRunner):
    """Runs every phase but one as it is."""

    def __init__(self, fault: str, phase: Phase, **options: Any) -> None:  # noqa: ANN401 - passed on
        super().__init__(**options)
        self._fault = fault
        self._faulty_phase = phase

    def run(
        self,
        phase: Phase,
        step: Callable[[], T | None],
        *,
        details: Callable[[T], Mapping[str, Any]],
        undo: Callable[[T], None] | None = None,
    ) -> T:
        if phase is self._faulty_phase:
            step = partial(self._go_wrong, step)
        return super().run(phase, step, details=details, undo=undo)

    def skip(self, phase: Phase, reason: str) -> None:
        if phase is not self._faulty_phase:
            super().skip(phase, reason)
        else:
            self.run(phase, lambda: reason, details=lambda skipped: {})

    def _go_wrong(self, step: Callable[[], T | None]) -> T | None:
        match self._fault:
            case "raise":
                raise RuntimeError("injected")
            case "hang":
                time.sleep(600)
            case "kill":
                os.kill(os.getpid(), signal.SIGKILL)
            case "exit":
                raise SystemExit(7)
            case _:
                pass
        return None


def main(kind: str, fault: str, phase: str, *connection: str) -> int:
    runner = partial(FaultyRunner, fault, Phase(phase))
    if kind == "torch":
        from specserve.torch_engine.process import main as torch_main  # seconds

        return torch_main(connection, make_runner=runner)
    return scripted_main("none", int(connection[1]), make_runner=runner)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
