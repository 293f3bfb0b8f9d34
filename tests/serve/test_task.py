"""Whole runs, in processes of their own: exit codes, probes, signals, and what is left behind."""

import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest

from specserve.worker.events import read_events
from specserve.worker.ledger import read_ledger

SCRIPTED_RUN = str(Path(__file__).parent / "scripted_run.py")
COMMAND_LINE = ("-m", "specserve")
PATIENCE = 60.0

# First prompt tokens that the scripted worker knows.
DIES, SLOW, ENDLESS, HANGS = 100, 200, 300, 310

Start = Callable[..., "Served"]


class Served:
    """One run. `url` waits for the line that says ready."""

    def __init__(self, program: tuple[str, ...], overrides: tuple[str, ...], folder: Path) -> None:
        self.folder = folder / "run"
        self._log = folder / "log.jsonl"
        with self._log.open("wb") as log:
            self.process = subprocess.Popen(
                [
                    sys.executable,
                    *program,
                    *overrides,
                    f"hydra.run.dir={self.folder}",
                ],
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        self._seen = {self.process.pid}

    @property
    def lines(self) -> list[dict[str, Any]]:
        """The log so far; what is no JSON (a traceback, a ConfigError) under `text`."""
        found: list[dict[str, Any]] = []
        for line in self._log.read_text().splitlines():
            try:
                found.append(json.loads(line))
            except json.JSONDecodeError:
                found.append({"event": "text", "text": line})
        return found

    def wait_for(self, event: str, **fields: str) -> dict[str, Any]:
        """The first line of that event with those fields."""
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            self._remember_processes()
            for line in self.lines:
                if line["event"] == event and fields.items() <= line.items():
                    return line
            if self.process.poll() is not None:
                break
            time.sleep(0.02)
        pytest.fail(f"no {event} {fields} in {self.lines[-5:]}")

    def url(self) -> str:
        return str(self.wait_for("server.ready")["url"])

    def worker_pid(self) -> int:
        (worker,) = psutil.Process(self.process.pid).children()
        return worker.pid

    def end(self) -> int:
        """The exit code; nothing that this run has started may be left."""
        code = self.process.wait(PATIENCE)
        left = [pid for pid in self._seen if psutil.pid_exists(pid)]
        assert [] == left
        return code

    def stop(self) -> None:
        if self.process.poll() is None:
            self.process.terminate()
            self.process.wait(PATIENCE)

    def _remember_processes(self) -> None:
        if self.process.poll() is None:
            children = psutil.Process(self.process.pid).children(recursive=True)
            self._seen |= {child.pid for child in children}


@pytest.fixture
def start(tiny_pair: tuple[str, ...], tmp_path: Path) -> Iterator[Start]:
    runs: list[Served] = []

    def run(lie: str = "none", *overrides: str, program: tuple[str, ...] | None = None) -> Served:
        folder = tmp_path / str(len(runs))
        folder.mkdir()
        runs.append(Served(program or (SCRIPTED_RUN, lie), (*tiny_pair, *overrides), folder))
        return runs[-1]

    yield run
    for served in runs:
        served.stop()


def _body(prompt: list[int], **others: bool) -> dict[str, Any]:
    model = "target"  # the folder of the tiny pair
    return {"model": model, "prompt": prompt, "max_tokens": 4, "temperature": 0, **others}


def _complete(url: str, prompt: list[int]) -> httpx.Response:
    return httpx.post(f"{url}/v1/completions", json=_body(prompt), timeout=PATIENCE)


def _streaming(url: str, prompt: list[int]) -> AbstractContextManager[httpx.Response]:
    body = _body(prompt, stream=True)
    return httpx.stream("POST", f"{url}/v1/completions", json=body, timeout=PATIENCE)


def _is_red(url: str) -> bool:
    """A server that has ended already is no healthier than one that says so."""
    try:
        return httpx.get(f"{url}/health", timeout=2.0).status_code == 503
    except httpx.TransportError:
        return True


def test_a_run_serves_finishes_at_sigterm_what_runs_and_leaves_its_record(start: Start) -> None:
    served = start()
    url = served.url()

    assert ["target"] == [m["id"] for m in httpx.get(f"{url}/v1/models").json()["data"]]
    assert 200 == httpx.get(f"{url}/ready").status_code
    assert 200 == httpx.get(f"{url}/health").status_code
    assert 4 == _complete(url, [1, 2, 3]).json()["usage"]["completion_tokens"]

    with _streaming(url, [SLOW, 1]) as answer:
        served.process.terminate()
        served.wait_for("server.draining")
        assert "[DONE]" in answer.read().decode()
    assert 0 == served.end()
    with pytest.raises(httpx.ConnectError):
        httpx.get(f"{url}/health")
    assert {
        "config.yaml",
        "overrides.txt",
        "plan.json",
        "facts.json",
        "ledger.jsonl",
        "events.jsonl",
    } == {path.name for path in served.folder.iterdir()}
    assert 14 == len(read_ledger(served.folder / "ledger.jsonl"))
    phases = [line for line in served.lines if line["event"] in ("phase.start", "phase.done")]
    assert 14 == len(phases)


@pytest.mark.parametrize("program", [None, COMMAND_LINE], ids=["scripted", "torch"])
def test_an_idle_server_ends_within_a_second_of_sigterm(
    start: Start, program: tuple[str, ...] | None
) -> None:
    served = start("none", "engine.num_threads=1", program=program)
    httpx.get(f"{served.url()}/ready")
    told = time.monotonic()

    served.process.terminate()

    assert 0 == served.process.wait(PATIENCE)
    assert time.monotonic() - told < 1.0
    assert 0 == served.end()


def test_a_hung_step_ends_the_run_with_exit_code_4_and_is_named(start: Start) -> None:
    served = start("none", "scheduler.step_limit_seconds=0.5")
    url = served.url()
    asked = time.monotonic()

    answer = _complete(url, [HANGS])

    assert 500 <= answer.status_code < 600
    assert "the worker hangs: its step has run for" in answer.text
    assert 4 == served.end()
    assert time.monotonic() - asked < 0.5 + 4.0
    kinds = [event.kind for event in read_events(served.folder / "events.jsonl")]
    assert ["worker.hung", "worker.died"] == [kind for kind in kinds if kind.startswith("worker.")]
    assert any("requests in flight: cmpl-" in line.get("text", "") for line in served.lines)
    assert any("in _compute" in line.get("text", "") for line in served.lines)


def test_an_interrupt_ends_at_once_with_130(start: Start) -> None:
    served = start()
    served.url()

    served.process.send_signal(signal.SIGINT)

    assert 130 == served.end()


def test_a_server_that_builds_is_alive_not_ready_and_ends_at_sigterm(start: Start) -> None:
    served = start("hangs in the self test")
    served.wait_for("phase.start", phase="self_test")
    (listening,) = [
        connection.laddr
        for connection in psutil.Process(served.process.pid).net_connections("tcp4")
        if connection.status == psutil.CONN_LISTEN
    ]
    url = f"http://127.0.0.1:{listening.port}"

    health, ready = httpx.get(f"{url}/health"), httpx.get(f"{url}/ready")

    assert (200, "starting") == (health.status_code, health.json()["status"])
    assert (503, "self_test") == (ready.status_code, ready.json()["phase"])
    assert 503 == _complete(url, [1]).status_code
    served.process.terminate()
    assert 0 == served.end()
    assert "failed" == read_ledger(served.folder / "ledger.jsonl")[-1].event


def test_an_interrupt_while_building_leaves_no_worker(start: Start) -> None:
    served = start("hangs in the self test")
    served.wait_for("phase.start", phase="self_test")

    served.process.send_signal(signal.SIGINT)

    assert 130 == served.end()


def test_a_failed_build_exits_3_and_names_its_phase(start: Start) -> None:
    served = start("hangs in the self test", "build.limit_seconds.self_test=0.5")

    assert 3 == served.end()
    (text,) = [line["text"] for line in served.lines if line["event"] == "text"]
    assert text.startswith("phase self_test failed: EngineError: time limit of 0.5 s exceeded")
    assert [] == [line for line in served.lines if line["event"] == "server.ready"]


def test_a_worker_that_dies_fails_its_requests_and_health_and_exits_4(start: Start) -> None:
    served = start()
    url = served.url()

    answer = _complete(url, [DIES])
    died = time.monotonic()

    assert 500 <= answer.status_code < 600
    assert "killed by SIGKILL" in answer.text
    assert _is_red(url)
    assert time.monotonic() - died < 2.0
    assert 4 == served.end()
    events = read_events(served.folder / "events.jsonl")
    assert "worker.died" in [event.kind for event in events]
    assert any("killed by SIGKILL" in line.get("text", "") for line in served.lines)


def test_draining_ends_at_its_limit(start: Start) -> None:
    served = start("none", "server.drain_seconds=0.5")
    url = served.url()
    with _streaming(url, [ENDLESS]) as answer:
        served.process.terminate()
        text = answer.read().decode()

    assert "the engine is closed" in text
    assert 0 == served.end()
    assert "warning.cut_off" in [e.kind for e in read_events(served.folder / "events.jsonl")]


def test_a_refused_configuration_exits_2_and_starts_nothing(start: Start, tmp_path: Path) -> None:
    served = start("none", f"model.path={tmp_path}/nowhere")

    assert 2 == served.end()
    assert not served.folder.exists()


def test_the_worker_ends_with_its_supervisor(start: Start) -> None:
    """A supervisor that is killed can't stop its worker; the worker sees it."""
    served = start("hangs in the self test")
    served.wait_for("phase.start", phase="self_test")
    worker = psutil.Process(served.worker_pid())

    served.process.kill()

    assert [] == psutil.wait_procs([worker], timeout=5)[1]


def test_the_command_line_serves_the_torch_engine(start: Start) -> None:
    """The whole of it: real configuration, real worker, real text."""
    served = start("none", "engine.num_threads=1", program=COMMAND_LINE)
    url = served.url()

    answers = [_complete(url, [72, 101, 108]).json() for _ in range(2)]

    assert 4 == answers[0]["usage"]["completion_tokens"]
    assert answers[0]["choices"] == answers[1]["choices"]
    stats = httpx.get(f"{url}/server_info").json()
    assert "always" in json.dumps(stats)
    served.process.terminate()
    assert 0 == served.end()
