"""Real SGLang on this machine's CPU: whether it is there, its environment, a server of it."""

import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any
from urllib.error import URLError
from urllib.request import Request, urlopen

VERSION = "0.5.23"
REPOSITORY = Path(__file__).parents[2]
STAND_INS = Path(__file__).parent / "stand_ins"
DEMO = REPOSITORY / "specserve" / "demo"
NUM_STEPS = 3
START_SECONDS = 300.0
CPU_ARGUMENTS = (
    *("--device", "cpu", "--attention-backend", "intel_amx", "--disable-cuda-graph"),
    *("--dtype", "float32", "--grammar-backend", "none"),
    *("--max-running-requests", "8", "--max-total-tokens", "8192"),
)


def why_missing() -> str | None:
    """Why SGLang cannot run here, or None when it can."""
    try:
        installed = version("sglang")
    except PackageNotFoundError:
        return "SGLang is not installed: run scripts/setup_sglang_cpu"
    if installed != VERSION:
        return f"the stand-in kernels are those of SGLang {VERSION}, installed is {installed}"
    return None


def environment(extra: Mapping[str, str] | None = None) -> dict[str, str]:
    """This process's environment, changed so that SGLang runs on the CPU with the stand-ins."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(STAND_INS), str(REPOSITORY)]),
        "SGLANG_USE_CPU_ENGINE": "1",
        "CUDA_VISIBLE_DEVICES": "",
        "TORCHDYNAMO_DISABLE": "1",  # compiling would take half a minute of the first request
        "OMP_NUM_THREADS": "1",
        **(extra or {}),
    }


def plain_arguments(target: Path) -> list[str]:
    """No speculation."""
    return ["--model-path", str(target)]


def eagle3_arguments(target: Path, draft: Path) -> list[str]:
    """A chain of three draft steps."""
    return [
        *plain_arguments(target),
        *("--speculative-algorithm", "EAGLE3", "--speculative-draft-model-path", str(draft)),
        *("--speculative-num-steps", str(NUM_STEPS), "--speculative-eagle-topk", "1"),
        *("--speculative-num-draft-tokens", str(NUM_STEPS + 1)),
    ]


@dataclass(frozen=True, slots=True)
class SGLangServer:
    """A server that answers on `url`, and logs to `log`."""

    url: str
    log: Path

    def generate(
        self, input_ids: Sequence[Sequence[int]], *, max_new_tokens: int
    ) -> list[dict[str, Any]]:
        """Greedy continuations of several prompts at once, each with its `meta_info`."""
        sampling = {"temperature": 0, "max_new_tokens": max_new_tokens, "ignore_eos": True}
        body = {"input_ids": [list(ids) for ids in input_ids], "sampling_params": sampling}
        answers: list[dict[str, Any]] = json.loads(self._ask("/generate", body))
        return answers

    def info(self) -> dict[str, Any]:
        """The effective settings and counters, as `/server_info` reports them."""
        answer: dict[str, Any] = json.loads(self._ask("/server_info"))
        return answer

    def is_ready(self) -> bool:
        try:
            with urlopen(self.url + "/health", timeout=30) as response:
                return bool(response.status == 200)
        except (URLError, ConnectionError):
            return False

    def _ask(self, route: str, body: object = None) -> bytes:
        data = None if body is None else json.dumps(body).encode()
        request = Request(self.url + route, data, {"Content-Type": "application/json"})
        with urlopen(request, timeout=300) as response:
            answer: bytes = response.read()
            return answer


@contextmanager
def sglang_server(
    arguments: Sequence[str], log: Path, *, extra_environment: Mapping[str, str] | None = None
) -> Iterator[SGLangServer]:
    """Start a server with `arguments` beside the CPU's, and end all its processes afterwards.

    Raises RuntimeError with the end of the log when it ends by itself or is not ready in time.
    """
    port = free_port()
    dies_with_us = ["setpriv", "--pdeathsig", "KILL"]  # also when this process is killed
    command = [sys.executable, "-m", "sglang.launch_server", "--host", "127.0.0.1"]
    with log.open("w") as output:
        process = subprocess.Popen(
            [*dies_with_us, *command, "--port", str(port), *CPU_ARGUMENTS, *arguments],
            env=environment(extra_environment),
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    server = SGLangServer(f"http://127.0.0.1:{port}", log)
    try:
        _wait_until_ready(server, process)
        yield server
    finally:
        with suppress(ProcessLookupError):  # all of them have ended
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait_until_ready(server: SGLangServer, process: subprocess.Popen[bytes]) -> None:
    deadline = time.monotonic() + START_SECONDS
    while not server.is_ready():
        status = process.poll()
        if status is not None or time.monotonic() > deadline:
            end = "\n".join(server.log.read_text().splitlines()[-40:])
            raise RuntimeError(f"SGLang is not ready (exit status {status}):\n{end}")
        time.sleep(0.5)


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
