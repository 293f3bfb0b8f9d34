"""The main job in processes of its own, as a user starts it."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil
import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.contract import Served

ROOT = Path(__file__).parents[1]
PATIENCE = 60.0


@dataclass(frozen=True)
class MainJob:
    """A run of the main job that has said it is ready, and the way to talk to it."""

    process: subprocess.Popen[bytes]
    folder: Path
    served: Served

    def metrics(self) -> Mapping[str, float]:
        """The unlabelled samples of /metrics."""
        status, text = self.served.request("GET", "/metrics")
        assert 200 == status
        return {
            sample.name: sample.value
            for family in text_string_to_metric_families(text.decode())
            for sample in family.samples
            if not sample.labels
        }

    def set_policy(self, policy: Mapping[str, object]) -> None:
        status, text = self.served.request("PUT", "/v1/policy", policy)
        assert 200 == status, text

    def wait_until_idle(self) -> None:
        self.served.wait_until(lambda stats: stats["running"] == stats["queued"] == 0)


@contextmanager
def main_job(folder: Path, *overrides: str) -> Iterator[MainJob]:
    """Start it, wait until it is ready; in the end see SIGTERM end it with 0, worker and all."""
    log = folder / "log.jsonl"
    command = (sys.executable, "-m", "specserve", "+experiment=topk1_v2", *overrides)
    fixed = ("server.port=0", "logging=json", "engine.device=cpu", "engine.num_threads=1")
    with log.open("wb") as stderr:
        process = subprocess.Popen(
            [*command, *fixed, f"hydra.run.dir={folder / 'run'}"],
            cwd=ROOT,
            stderr=stderr,
            stdin=subprocess.DEVNULL,
        )
    try:
        base_url = _url(process, log)
        info = httpx.get(f"{base_url}/server_info").json()
        target = info["plan"]["target"]
        served = Served(base_url, target["name"], target["context_length"])
        family = [process.pid, *(child.pid for child in psutil.Process(process.pid).children())]
        with served.client:
            yield MainJob(process, folder / "run", served)
        process.send_signal(signal.SIGTERM)
        assert 0 == process.wait(PATIENCE), log.read_text()
        assert [] == [pid for pid in family if psutil.pid_exists(pid)]
    finally:
        process.kill()
        process.wait()


def _url(process: subprocess.Popen[bytes], log: Path) -> str:
    """Where the run says that it is ready."""
    deadline = time.monotonic() + PATIENCE
    while process.poll() is None and time.monotonic() < deadline:
        for line in log.read_text().splitlines():
            if '"server.ready"' in line:
                return str(json.loads(line)["url"])
        time.sleep(0.05)
    pytest.fail(f"never ready: {log.read_text()[-2000:]}")
