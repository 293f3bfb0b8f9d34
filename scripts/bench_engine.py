"""The torch engine against `transformers` and against itself, on the demo pair's held-out prompts.

    python scripts/bench_engine.py [--repeats 5] [--json bench/engine_cpu.json]

Each arm has a process of its own, as in service, and they take turns: every repeat runs all arms,
one after the other. A figure is a ratio within a repeat, shown as the median with the least and
the most: absolute times mean little on a shared machine.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from pathlib import Path

import torch
from arm_process import ArmProcess, Result, serve_runs
from engine_arms import held_out_prompts, make_arm, planned_threads
from transformers import AutoModelForCausalLM

from specserve.config.paths import resolve_path

Prompts = Sequence[tuple[int, ...]]
TRANSFORMERS = "transformers"
# Sync where host work is to be told apart: forward passes and host work then take turns.
ARMS: dict[str, tuple[list[str], int]] = {
    "plain": (["+experiment=baseline", "scheduler=sync"], 1),
    "plain at 8": (["+experiment=baseline", "scheduler=sync"], 8),
    "eagle": (["+experiment=topk1_v2", "policy=always", "scheduler=sync"], 1),
    "eagle, overlap": (["+experiment=topk1_v2", "policy=always"], 1),
    "eagle at 8": (["+experiment=topk1_v2", "policy=always", "scheduler=sync"], 8),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A ratio over the repeats, and what it is meant to reach, if anything."""

    name: str
    goal: str
    median: float
    least: float
    most: float
    reached: bool


def serve_arm(name: str, prompts: Prompts, num_tokens: int) -> None:
    """An arm's own process."""
    run = transformers_arm() if name == TRANSFORMERS else engine_arm(*ARMS[name])
    serve_runs(lambda: run(prompts, num_tokens))


def engine_arm(overrides: Sequence[str], concurrency: int) -> Callable[[Prompts, int], Result]:
    """Serve the prompts, `concurrency` at a time."""
    arm = make_arm(overrides)

    def run(prompts: Prompts, num_tokens: int) -> Result:
        forward, began = arm.clock.seconds, time.perf_counter()
        for first in range(0, len(prompts), concurrency):
            arm.outputs(prompts[first : first + concurrency], num_tokens)
        elapsed = time.perf_counter() - began
        stats = arm.loop.stats()
        return {
            "rate": len(prompts) * num_tokens / elapsed,
            "host_share": 1 - (arm.clock.seconds - forward) / elapsed,
            "acceptance_length": stats.acceptance_length,
            "drafted": stats.drafted,
            "accepted": stats.accepted,
            "verify_rounds": stats.verify_rounds,
            "threads": torch.get_num_threads(),
        }

    return run


def transformers_arm() -> Callable[[Prompts, int], Result]:
    """`generate` of the same model, one prompt after the other."""
    torch.set_num_threads(planned_threads())
    model = AutoModelForCausalLM.from_pretrained(
        resolve_path("bundled:demo/target"), dtype=torch.float32
    )

    def run(prompts: Prompts, num_tokens: int) -> Result:
        began = time.perf_counter()
        for prompt in prompts:
            ids = torch.tensor([prompt])
            model.generate(
                ids,
                attention_mask=torch.ones_like(ids),
                do_sample=False,
                min_new_tokens=num_tokens,
                max_new_tokens=num_tokens,
                pad_token_id=0,
            )
        elapsed = time.perf_counter() - began
        return {"rate": len(prompts) * num_tokens / elapsed, "threads": torch.get_num_threads()}

    return run


def measure(options: argparse.Namespace) -> dict[str, list[Result]]:
    """Each arm's results, after one run of each that warms it up."""
    names = [TRANSFORMERS, *ARMS]
    results: dict[str, list[Result]] = {name: [] for name in names}
    with ExitStack() as stack:
        sizes = ["--tokens", str(options.tokens), "--prompts", str(options.prompts)]
        arms = {name: ArmProcess([__file__, "--arm", name, *sizes]) for name in names}
        for arm in arms.values():
            stack.callback(arm.close)
        for arm in arms.values():
            arm.run()
        for repeat in range(options.repeats):
            for name, arm in arms.items():
                results[name].append(arm.run())
            rates = [f"{name} {found[-1]['rate']:.0f}/s" for name, found in results.items()]
            print(f"repeat {repeat + 1}: " + "  ".join(rates), flush=True)
    return results


def figures(results: dict[str, list[Result]]) -> list[Figure]:
    """The issue's figures, and two for information."""

    def ratio(name: str, above: str, below: str, least: float | None) -> Figure:
        pairs = zip(results[above], results[below], strict=True)
        return _figure(name, [a["rate"] / b["rate"] for a, b in pairs], least=least)

    def share(name: str, arm: str) -> Figure:
        return _figure(name, [one["host_share"] for one in results[arm]], most=0.15)

    return [
        ratio("plain / transformers, concurrency 1", "plain", TRANSFORMERS, 2.0),
        ratio("EAGLE-3 chain of 3 / plain, concurrency 1", "eagle", "plain", 1.3),
        ratio("plain concurrency 8 / concurrency 1", "plain at 8", "plain", 3.5),
        share("host share of a plain round", "plain"),
        share("host share of a speculative round", "eagle"),
        ratio("EAGLE-3 with overlap / sync", "eagle, overlap", "eagle", None),
        ratio("EAGLE-3 chain of 3 / plain, concurrency 8", "eagle at 8", "plain at 8", None),
    ]


def _figure(
    name: str, values: Sequence[float], *, least: float | None = None, most: float | None = None
) -> Figure:
    median = statistics.median(values)
    above = least is None or median >= least
    below = most is None or median <= most
    goals = [f">= {least:g}"] if least is not None else []
    goals += [f"<= {most:g}"] if most is not None else []
    return Figure(
        name=name,
        goal=" ".join(goals),
        median=median,
        least=min(values),
        most=max(values),
        reached=above and below,
    )


def main() -> int:
    """Print the figures; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=8, help="at least 8")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--json", type=Path, help="write figures and raw results to this file")
    parser.add_argument("--arm", choices=[TRANSFORMERS, *ARMS], help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.arm:
        serve_arm(options.arm, held_out_prompts(options.prompts), options.tokens)
        return 0
    results = measure(options)
    found = figures(results)
    for one in found:
        mark = ("ok    " if one.reached else "MISSED") if one.goal else "      "
        span = f"({one.least:.2f} to {one.most:.2f})"
        goal = f"goal {one.goal}" if one.goal else ""
        print(f"{mark} {one.name:44} {one.median:6.2f} {span:18} {goal}")
    eagle = results["eagle"][-1]
    print(f"acceptance length {eagle['acceptance_length']:.3f}, {eagle['verify_rounds']} rounds")
    if options.json:
        record = {
            "figures": [asdict(one) for one in found],
            "results": results,
            "torch": str(torch.__version__),
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
        }
        options.json.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    return 0 if all(one.reached for one in found) else 1


if __name__ == "__main__":
    raise SystemExit(main())
