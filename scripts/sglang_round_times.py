"""Round times of static SGLang servers by batch size and depth, as a calibration file.

    python scripts/sglang_round_times.py build/pair --attention fa3 \
        --out bench/h200/calibration.json --raw bench/h200/round_times.json

`build/pair` comes from scripts/construct_pair.py, so that every token is checked. Servers of
several depths run on one GPU, as many at once as its memory holds, and are measured in turns, each
while the others idle. Per point all requests start together, and only the time counts in which all
of them decode: from the last one's first token to the first one's last.
"""

import argparse
import asyncio
import datetime
import hashlib
import json
import os
import signal
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from importlib.metadata import version
from pathlib import Path

import aiohttp

from specserve.testing.constructed import ConstructedPair, load_pair

PROMPT_TOKENS, OUTPUT_TOKENS = 512, 256
FIRST_PORT = 31000
START_SECONDS = 400


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """What one run of `batch_size` requests at depth `num_steps` has shown.

    `rounds_by_emitted[i]` counts the chunks (one request's part of a round) of i + 1 tokens, in the
    window of `seconds` in which all requests decoded.
    """

    num_steps: int
    batch_size: int
    seconds: float
    rounds_by_emitted: tuple[int, ...]
    tokens_per_second: float
    wrong_outputs: int

    @property
    def round_seconds(self) -> float:
        """Seconds of a round of the whole batch."""
        return self.seconds * self.batch_size / sum(self.rounds_by_emitted)


class Server:
    """A static SGLang server; depth 0 has no draft."""

    def __init__(self, pair: ConstructedPair, num_steps: int, options: argparse.Namespace) -> None:
        self.num_steps = num_steps
        self.port = FIRST_PORT + num_steps
        self.log = options.logs / f"server_{num_steps}.log"
        most = max(options.batch_sizes)
        command = [
            *(sys.executable, "-m", "sglang.launch_server"),
            *("--model-path", str(pair.target_folder), "--port", str(self.port)),
            *("--attention-backend", options.attention, "--skip-tokenizer-init"),
            *("--context-length", "2048", "--grammar-backend", "none", "--disable-radix-cache"),
            *("--max-running-requests", str(most), "--cuda-graph-max-bs", str(most)),
            *("--max-total-tokens", str(most * (PROMPT_TOKENS + OUTPUT_TOKENS + 64))),
            *("--mem-fraction-static", "0.9"),
        ]
        if num_steps:
            command += [
                *("--speculative-algorithm", "EAGLE3", "--speculative-eagle-topk", "1"),
                *("--speculative-draft-model-path", str(pair.draft_folder)),
                *("--speculative-num-steps", str(num_steps)),
                *("--speculative-num-draft-tokens", str(num_steps + 1)),
            ]
        self.command = command
        self._process = subprocess.Popen(
            command, stdout=self.log.open("w"), stderr=subprocess.STDOUT, start_new_session=True
        )

    def wait_ready(self, until: float) -> None:
        """Raises RuntimeError with the end of the log if it has died or is too late."""
        while time.monotonic() < until and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=2):
                    return
            except OSError:
                time.sleep(1)
        raise RuntimeError(f"depth {self.num_steps}: not ready\n{self.log.read_text()[-6000:]}")

    def told(self, pair: ConstructedPair) -> str:
        """The command, with the pair's folder as PAIR."""
        words = ["python", *self.command[1:]]
        return " ".join(words).replace(str(pair.target_folder.parent), "PAIR")

    def close(self) -> None:
        """End the server and all of its processes."""
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


async def run_point(server: Server, pair: ConstructedPair, batch_size: int) -> Point:
    """All requests at once."""
    first, size = pair.cycle.first_id, pair.cycle.size
    prompts = [
        [first + (start * 7 + i) % size for i in range(PROMPT_TOKENS)]
        for start in range(batch_size)
    ]
    began = time.perf_counter()
    timeout, connector = aiohttp.ClientTimeout(total=300), aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(timeout=timeout, connector=connector) as session:
        streams = await asyncio.gather(*(_stream(session, server.port, p) for p in prompts))
    elapsed = time.perf_counter() - began
    opened = max(times[0][0] for times, _ in streams)
    closed = min(times[-1][0] for times, _ in streams)
    emitted = [n for times, _ in streams for at, n in times[1:] if opened < at <= closed]
    expected = [list(pair.expected_output(p, OUTPUT_TOKENS, ignore_eos=True)) for p in prompts]
    return Point(
        num_steps=server.num_steps,
        batch_size=batch_size,
        seconds=closed - opened,
        rounds_by_emitted=tuple(emitted.count(i + 1) for i in range(max(emitted, default=1))),
        tokens_per_second=batch_size * OUTPUT_TOKENS / elapsed,
        wrong_outputs=sum(ids != want for (_, ids), want in zip(streams, expected, strict=True)),
    )


def _prompt(pair: ConstructedPair, start: int) -> list[int]:
    cycle = pair.cycle
    return [cycle.first_id + (start + i) % cycle.size for i in range(PROMPT_TOKENS)]


async def _stream(
    session: aiohttp.ClientSession, port: int, prompt: Sequence[int]
) -> tuple[list[tuple[float, int]], list[int]]:
    """When each chunk came and how many tokens it brought; and all ids."""
    body = {
        "input_ids": prompt,
        "stream": True,
        "sampling_params": {
            "temperature": 0,
            "max_new_tokens": OUTPUT_TOKENS,
            "ignore_eos": True,
        },
    }
    times: list[tuple[float, int]] = []
    ids: list[int] = []
    seen = 0
    async with session.post(f"http://127.0.0.1:{port}/generate", json=body) as response:
        response.raise_for_status()
        async for line in response.content:
            if not line.startswith(b"data:") or b"[DONE]" in line:
                continue
            now, chunk = time.perf_counter(), json.loads(line[5:])
            count = chunk["meta_info"]["completion_tokens"]
            new = chunk["output_ids"]
            # Some versions send all ids with every chunk, others the new ones only.
            ids = new if len(new) == count else ids + new
            if count > seen:
                times.append((now, count - seen))
                seen = count
    return times, ids


def measure(
    pair: ConstructedPair, options: argparse.Namespace, points: list[Point], commands: list[str]
) -> None:
    """Every depth that `points` lack, and every batch size, `repeats` times, in turns."""
    measured = {point.num_steps for point in points}
    missing = [depth for depth in options.depths if depth not in measured]
    for first in range(0, len(missing), options.at_once):
        group = missing[first : first + options.at_once]
        with ExitStack() as stack:
            servers: list[Server] = []
            for depth in group:
                servers.append(Server(pair, depth, options))
                stack.callback(servers[-1].close)
                commands.append(servers[-1].told(pair))
                time.sleep(options.stagger)
            until = time.monotonic() + START_SECONDS
            for server in servers:
                server.wait_ready(until)
            print(f"depths {group}: ready", flush=True)
            for server in servers:
                asyncio.run(run_point(server, pair, max(options.batch_sizes)))  # warm up
            for repeat in range(options.repeats):
                for batch_size in options.batch_sizes:
                    for server in servers:
                        point = asyncio.run(run_point(server, pair, batch_size))
                        points.append(point)
                        print(
                            f"{repeat} depth {point.num_steps} batch {batch_size}: "
                            f"{point.round_seconds * 1e3:.2f} ms a round, "
                            f"{point.tokens_per_second:.0f} tokens/s, {point.wrong_outputs} wrong, "
                            f"{point.rounds_by_emitted}",
                            flush=True,
                        )
        save_raw(options.raw, points, commands)


def load_raw(path: Path) -> tuple[list[Point], list[str]]:
    """What an earlier call has measured."""
    if not path.exists():
        return [], []
    raw = json.loads(path.read_text())
    found = [
        Point(**{**one, "rounds_by_emitted": tuple(one["rounds_by_emitted"])})
        for one in raw["points"]
    ]
    return found, raw["servers"]


def save_raw(path: Path, points: Sequence[Point], commands: Sequence[str]) -> None:
    """Everything, one point a line."""
    lines = ",\n".join(json.dumps(asdict(point)) for point in points)
    path.write_text(f'{{"servers": {json.dumps(commands, indent=1)},\n"points": [\n{lines}\n]}}\n')


def table(points: Sequence[Point], pair: ConstructedPair, options: argparse.Namespace) -> object:
    """The calibration file: the least of the repeats' round times, acceptance of the deepest."""

    def least(depth: int, size: int) -> float:
        found = [p for p in points if (p.num_steps, p.batch_size) == (depth, size)]
        return min(p.round_seconds for p in found)

    deepest = max(options.depths)
    rounds = [0] * (deepest + 1)
    for point in points:
        if point.num_steps == deepest:
            for i, count in enumerate(point.rounds_by_emitted[: deepest + 1]):
                rounds[i] += count
    query = "--query-gpu=name,driver_version"
    asked = ["nvidia-smi", query, "--format=csv,noheader"]
    gpu, driver = subprocess.check_output(asked, text=True).splitlines()[0].split(", ")
    names = ("sglang", "torch", "transformers")
    return {
        "format": "specserve-calibration-1",
        "provenance": {
            "device": gpu,
            "driver": driver,
            "engine": "sglang",
            "versions": {name: version(name) for name in names},
            "attention": options.attention,
            "target": options.name,
            "target_hash": _hash(pair.target_folder / "config.json"),
            "draft": f"constructed, p={pair.cycle.acceptance_probability:g}",
            "draft_hash": _hash(pair.draft_folder / "config.json"),
            "workload": f"{PROMPT_TOKENS} tokens in, {OUTPUT_TOKENS} out, greedy",
            "date": datetime.datetime.now(datetime.UTC).date().isoformat(),
            "command": "python scripts/sglang_round_times.py " + options.told,
        },
        "topk": 1,
        "batch_sizes": options.batch_sizes,
        "depths": [
            {"num_steps": depth, "round_seconds": [least(depth, n) for n in options.batch_sizes]}
            for depth in sorted(options.depths)
        ],
        "verified": sum(rounds),
        "accepted_by_position": [sum(rounds[i + 1 :]) for i in range(deepest)],
    }


def _hash(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def main() -> None:
    """Measure, and write the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pair", type=Path)
    parser.add_argument("--name", default="Llama-3.1-8B shape", help="what to call the target")
    parser.add_argument("--attention", default="fa3")
    parser.add_argument("--depths", type=_numbers, default=[0, 1, 2, 3, 5])
    parser.add_argument("--batch-sizes", type=_numbers, default=[1, 4, 16, 32, 64, 128, 256])
    parser.add_argument("--repeats", type=int, default=2)
    parser.add_argument("--at-once", type=int, default=2, help="servers on the GPU at a time")
    parser.add_argument("--stagger", type=float, default=3, help="seconds between their starts")
    parser.add_argument("--out", type=Path, required=True, help="calibration file to write")
    parser.add_argument(
        "--raw", type=Path, required=True, help="every point; continued if it exists"
    )
    parser.add_argument("--logs", type=Path, default=Path(), help="folder for the servers' logs")
    options = parser.parse_args()
    options.told = f"PAIR --attention {options.attention}"
    pair = load_pair(options.pair)
    points, commands = load_raw(options.raw)
    measure(pair, options, points, commands)
    options.depths = sorted({point.num_steps for point in points})
    options.out.write_text(json.dumps(table(points, pair, options), indent=2) + "\n")
    median = statistics.median(p.seconds for p in points)
    print(f"{len(points)} points, windows of {median:.1f} s in the median")


def _numbers(text: str) -> list[int]:
    return [int(part) for part in text.split(",")]


if __name__ == "__main__":
    main()
