"""An arm of a benchmark in a process of its own, as an engine has one in service."""

import json
import subprocess
import sys
from collections.abc import Callable, Sequence
from typing import Any

Result = dict[str, Any]


class ArmProcess:
    """A script's process that calls `serve_runs`; it runs once for each `run`."""

    def __init__(self, arguments: Sequence[str]) -> None:
        """`arguments`: the script, and what makes it serve the arm."""
        self._process = subprocess.Popen(
            [sys.executable, *arguments], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def run(self) -> Result:
        """What the arm has measured. Raises RuntimeError if its process has died."""
        if self._process.stdin is None or self._process.stdout is None:
            raise RuntimeError("the arm has no pipes")
        self._process.stdin.write("run\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"an arm ended with status {self._process.wait()}")
        result: Result = json.loads(line)
        return result

    def close(self) -> None:
        """End the process."""
        self._process.kill()
        self._process.wait()


def serve_runs(run: Callable[[], Result]) -> None:
    """The arm's side: for each line of stdin one run, told on stdout as JSON."""
    for _ in sys.stdin:
        print(json.dumps(run()), flush=True)
