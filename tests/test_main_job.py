"""The main job, whole: one command, its supervisor, worker and server, and the official client.

A constructed pair says every token beforehand, so a load test under switching policies can check
every token; the shipped pair shows that speculation really happens and really changes no text.
The servers run on the CPU and on one thread, whatever the machine has.
"""

import asyncio
import json
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import cycle
from pathlib import Path
from typing import Any

import httpx
import psutil
import pytest
from openai import AsyncOpenAI
from openai.types import Completion
from prometheus_client.parser import text_string_to_metric_families

from specserve.testing.constructed import ConstructedPair, construct_pair
from specserve.testing.constructed_tokenizer import token_text
from specserve.worker.ledger import read_ledger
from specserve.worker.phases import Phase
from tests.server.contract import CHECKS, Served, record

ROOT = Path(__file__).parents[1]
PATIENCE = 60.0

ALWAYS = {"kind": "always"}
THRESHOLD = {
    "kind": "batch_threshold",
    "disable_above": 3,
    "resume_at": 2,
    "min_dwell_rounds": 1,
    "while_off": "refill",
}
MAX_RUNNING = 8
NUM_CLIENTS = 12


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
    """Start it, wait until it is ready, and in the end see SIGTERM end it with 0, worker and all."""
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


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> ConstructedPair:
    return construct_pair(tmp_path_factory.mktemp("pair"), p=0.7)


@pytest.fixture(scope="module")
def constructed(
    pair: ConstructedPair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MainJob]:
    """The main job on the constructed pair, giving up speculation early."""
    with main_job(
        tmp_path_factory.mktemp("constructed"),
        f"model.path={pair.target_folder}",
        f"model.draft_path={pair.draft_folder}",
        f"scheduler.max_running_requests={MAX_RUNNING}",
        *(f"policy.{name}={value}" for name, value in THRESHOLD.items() if name != "kind"),
    ) as job:
        yield job


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainJob]:
    """The main job as it comes: the pair that ships."""
    with main_job(tmp_path_factory.mktemp("demo")) as job:
        yield job


@dataclass(frozen=True)
class Ask:
    """One request of the load, and what has to come of it."""

    prompt: Sequence[int]
    max_tokens: int
    text: str
    as_text: bool = False
    stream: bool = False
    leave_after: int | None = None
    stop: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """In the words of the client."""
        written = "".join(token_text(token) for token in self.prompt)
        return {
            "prompt": written if self.as_text else list(self.prompt),
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "stop": self.stop,
        }

    def stopped_inside(self) -> "Ask":
        """The same with a stop string that spans two tokens in the middle of the text."""
        middle = self.text.index("><", len(self.text) // 2)
        stop = self.text[middle - 2 : middle + 3]
        return replace(self, stop=stop, text=self.text[: self.text.index(stop)])


def make_ask(pair: ConstructedPair, client: int, turn: int) -> Ask:
    """Another length, way of asking and way of ending for every client and turn."""
    number = client + NUM_CLIENTS * turn
    length = 1 + number * 29 % 300  # the longest take more than one chunk of prefill
    first = pair.cycle.first_id
    prompt = [first + (number * 17 + i * i) % pair.cycle.size for i in range(length)]
    max_tokens = 20 + number * 37 % 120
    expected = pair.expected_output(prompt, max_tokens)
    ask = Ask(
        prompt=prompt,
        max_tokens=max_tokens,
        text="".join(token_text(token) for token in expected),
        as_text=number % 3 == 0,
        stream=number % 2 == 0,
    )
    match number % 5:
        case 1:
            return ask.stopped_inside()
        case 2:
            return replace(ask, stream=True, leave_after=1 + number % 7)
        case _:
            return ask


async def send(client: AsyncOpenAI, model: str, ask: Ask) -> str:
    """Ask, and hold the answer against what it has to be."""
    if not ask.stream:
        answer: Completion = await client.completions.create(model=model, **ask.fields)
        assert ask.text == answer.choices[0].text
        assert ("stop" if ask.stop else "length") == answer.choices[0].finish_reason
        assert answer.usage is not None
        assert ask.stop or ask.max_tokens == answer.usage.completion_tokens
        return "whole, stopped" if ask.stop else "whole"
    text, num_chunks, reason = "", 0, None
    async with await client.completions.create(model=model, stream=True, **ask.fields) as stream:
        async for chunk in stream:
            text += chunk.choices[0].text
            reason = chunk.choices[0].finish_reason
            num_chunks += 1
            if num_chunks == ask.leave_after:
                break
    if ask.leave_after is not None and reason is None:
        assert text
        assert ask.text.startswith(text)
        return "left"
    assert ask.text == text
    assert ("stop" if ask.stop else "length") == reason
    return "streamed, stopped" if ask.stop else "streamed"


async def load(job: MainJob, clients: Sequence[Sequence[Ask]]) -> set[str]:
    """Every client asks in turn, all clients at once. Returns the kinds of ends that were seen."""
    served = job.served
    async with AsyncOpenAI(
        base_url=f"{served.base_url}/v1", api_key=served.api_key, max_retries=0, timeout=PATIENCE
    ) as client:

        async def ask_in_turn(asks: Sequence[Ask]) -> list[str]:
            return [await send(client, served.model, ask) for ask in asks]

        ends = await asyncio.gather(*(ask_in_turn(asks) for asks in clients))
    return {end for each in ends for end in each}


async def flip(job: MainJob, stop: asyncio.Event) -> int:
    """Replace the policy over and over until told to stop; returns how often."""
    flips = 0
    async with httpx.AsyncClient(base_url=job.served.base_url, timeout=PATIENCE) as client:
        for policy in cycle((ALWAYS, {"kind": "off"}, THRESHOLD)):
            answer = await client.put("/v1/policy", json=policy)
            assert 200 == answer.status_code, answer.text
            flips += 1
            if stop.is_set():
                break
            await asyncio.sleep(0.03)
    return flips


async def load_while_flipping(
    job: MainJob, clients: Sequence[Sequence[Ask]]
) -> tuple[set[str], int]:
    stop = asyncio.Event()
    flipping = asyncio.create_task(flip(job, stop))
    try:
        ends = await load(job, clients)
    finally:
        stop.set()
        flips = await flipping
    return ends, flips


def assert_everything_is_given_back(job: MainJob) -> None:
    job.wait_until_idle()
    metrics = job.metrics()
    assert MAX_RUNNING == metrics["specserve_total_slots"] == metrics["specserve_free_slots"]
    assert 0 == metrics["specserve_running"] == metrics["specserve_running_decodes"]
    assert 0 == metrics["specserve_queued"]


def test_the_threshold_switches_with_the_load_and_every_token_is_right(
    constructed: MainJob, pair: ConstructedPair
) -> None:
    """Eight short answers run plainly; the one that is much longer speculates in the end."""
    constructed.set_policy(THRESHOLD)
    before = constructed.metrics()
    asks = []
    for number in range(MAX_RUNNING):
        prompt, max_tokens = [300 + number], 180 if number == 0 else 30
        expected = pair.expected_output(prompt, max_tokens)
        asks.append([Ask(prompt, max_tokens, "".join(map(token_text, expected)))])

    asyncio.run(load(constructed, asks))

    after = constructed.metrics()
    grown = {name: after[name] - before[name] for name in after if name.endswith("_total")}
    assert grown["specserve_plain_steps_total"] > MAX_RUNNING
    assert grown["specserve_verify_rounds_total"] > 10
    assert grown["specserve_switches_total"] >= 2
    assert_everything_is_given_back(constructed)


def test_twelve_clients_get_every_token_right_while_the_policy_flips(
    constructed: MainJob, pair: ConstructedPair
) -> None:
    before = constructed.metrics()
    clients = [[make_ask(pair, client, turn) for turn in range(4)] for client in range(NUM_CLIENTS)]

    ends, flips = asyncio.run(load_while_flipping(constructed, clients))

    after = constructed.metrics()
    assert {"whole", "whole, stopped", "streamed", "streamed, stopped", "left"} == ends
    assert flips >= 12
    for name in ("verify_rounds", "plain_steps", "switches", "accepted"):
        assert after[f"specserve_{name}_total"] > before[f"specserve_{name}_total"], name
    assert_everything_is_given_back(constructed)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_main_job_keeps_every_promise_of_a_server(
    constructed: MainJob, check: Callable[[Served], None]
) -> None:
    constructed.set_policy(ALWAYS)

    check(constructed.served)


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 0.8, "seed": 5}])
def test_speculation_changes_no_text_of_the_shipped_pair(
    demo: MainJob, sampling: dict[str, Any]
) -> None:
    fields = {"prompt": "def read_lines(path):\n", "max_tokens": 48, **sampling}

    plain = demo.served.complete(**fields, extra_body={"speculation": False})
    speculative = demo.served.complete(**fields)

    assert plain.choices[0].text == speculative.choices[0].text
    assert plain.choices[0].text.strip()
    assert 0 == record(plain)["drafted"]
    assert record(speculative)["accepted"] > 0
    assert record(speculative)["acceptance_length"] > 1
    assert demo.metrics()["specserve_accepted_total"] > 0


def test_an_int8_target_answers_and_its_run_records_all_seven_phases(tmp_path: Path) -> None:
    with main_job(tmp_path, "quantization=int8") as job:
        answer = job.served.complete()
        plan = json.loads((job.folder / "plan.json").read_text())

    assert answer.choices[0].text.strip()
    assert record(answer)["accepted"] > 0
    assert "int8" == plan["target"]["quantization"]
    records = read_ledger(job.folder / "ledger.jsonl")
    assert [(phase, 0) for phase in Phase] == [
        (each.phase, each.rank) for each in records if each.event == "start"
    ]
    ended = {each.phase: each.event for each in records if each.event != "start"}
    done = dict.fromkeys(Phase, "done")
    assert {**done, Phase.CUDA_GRAPHS: "skipped"} == ended
