"""The torch engine against `transformers` and against itself, on the demo pair's held-out prompts.

    python scripts/bench_engine.py [--repeats 5] [--json bench/engine_cpu.json]

Every repeat runs all arms, one after the other, and each figure is a ratio within a repeat: the
median is shown with the least and the most. Absolute times mean little on a shared machine.
"""

import argparse
import json
import os
import platform
import statistics
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from engine_arms import Arm, held_out_prompts, make_arm
from transformers import AutoModelForCausalLM

from specserve.config.paths import resolve_path

PLAIN = ["+experiment=baseline"]
EAGLE = ["+experiment=topk1_v2", "policy=always"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A ratio over the repeats, and what it is meant to reach."""

    name: str
    goal: str
    median: float
    least: float
    most: float
    reached: bool


def transformers_rate(
    model: Any,  # noqa: ANN401 - transformers' models share no useful type
    prompts: Sequence[tuple[int, ...]],
    num_tokens: int,
) -> float:
    """Output tokens per second of `generate`, one prompt after the other."""
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
    return len(prompts) * num_tokens / (time.perf_counter() - began)


@contextmanager
def host_share(arm: Arm, shares: list[float]) -> Iterator[None]:
    """Note the share of the block's time that was spent outside forward passes."""
    before, began = arm.clock.seconds, time.perf_counter()
    yield
    elapsed = time.perf_counter() - began
    shares.append(1 - (arm.clock.seconds - before) / elapsed)


def measure(repeats: int, num_prompts: int, num_tokens: int) -> tuple[list[Figure], dict[str, Any]]:
    """Run all arms `repeats` times, after one run that warms them up."""
    prompts = held_out_prompts(num_prompts)
    # Sync, so that forward passes and host work take turns and can be told apart.
    plain, eagle = make_arm([*PLAIN, "scheduler=sync"]), make_arm([*EAGLE, "scheduler=sync"])
    overlapped = make_arm(EAGLE)
    reference = AutoModelForCausalLM.from_pretrained(
        resolve_path("bundled:demo/target"), dtype=torch.float32
    )
    rates: dict[str, list[float]] = {
        name: [] for name in ("transformers", "plain", "eagle", "overlap", "eight")
    }
    plain_shares: list[float] = []
    eagle_shares: list[float] = []
    for repeat in range(repeats + 1):
        one_by_one = {
            "transformers": transformers_rate(reference, prompts, num_tokens),
        }
        with host_share(plain, plain_shares):
            one_by_one["plain"] = plain.generate_each(prompts, num_tokens)
        with host_share(eagle, eagle_shares):
            one_by_one["eagle"] = eagle.generate_each(prompts, num_tokens)
        one_by_one["overlap"] = overlapped.generate_each(prompts, num_tokens)
        one_by_one["eight"] = plain.generate(prompts[:8], num_tokens)
        if repeat == 0:  # kernels chosen, memory touched
            plain_shares.clear()
            eagle_shares.clear()
            continue
        for name, rate in one_by_one.items():
            rates[name].append(rate)
        print(f"repeat {repeat}: " + "  ".join(f"{k} {v:.0f}/s" for k, v in one_by_one.items()))
    stats = eagle.loop.stats()
    figures = [
        _ratio("plain / transformers, concurrency 1", rates["plain"], rates["transformers"], 2.0),
        _ratio("EAGLE-3 chain of 3 / plain, concurrency 1", rates["eagle"], rates["plain"], 1.3),
        _ratio("  the same, overlap scheduler", rates["overlap"], rates["plain"], 1.3),
        _ratio("plain concurrency 8 / concurrency 1", rates["eight"], rates["plain"], 3.5),
        _share("host share of a plain round", plain_shares, 0.15),
        _share("host share of a speculative round", eagle_shares, 0.15),
    ]
    raw = {
        "rates": rates,
        "acceptance_length": stats.acceptance_length,
        "drafted": stats.drafted,
        "accepted": stats.accepted,
        "verify_rounds": stats.verify_rounds,
        "num_prompts": num_prompts,
        "num_tokens": num_tokens,
        "threads": torch.get_num_threads(),
        "torch": str(torch.__version__),
        "processor": platform.processor() or platform.machine(),
        "cores": os.cpu_count(),
    }
    return figures, raw


def _ratio(name: str, above: Sequence[float], below: Sequence[float], least: float) -> Figure:
    ratios = [a / b for a, b in zip(above, below, strict=True)]
    median = statistics.median(ratios)
    return Figure(
        name=name,
        goal=f">= {least:g}",
        median=median,
        least=min(ratios),
        most=max(ratios),
        reached=median >= least,
    )


def _share(name: str, shares: Sequence[float], most: float) -> Figure:
    median = statistics.median(shares)
    return Figure(
        name=name,
        goal=f"<= {most:g}",
        median=median,
        least=min(shares),
        most=max(shares),
        reached=median <= most,
    )


def main() -> int:
    """Print the figures; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--prompts", type=int, default=8, help="at least 8")
    parser.add_argument("--tokens", type=int, default=96)
    parser.add_argument("--json", type=Path, help="write figures and raw rates to this file")
    options = parser.parse_args()
    figures, raw = measure(options.repeats, options.prompts, options.tokens)
    for one in figures:
        mark = "ok    " if one.reached else "MISSED"
        span = f"({one.least:.2f} to {one.most:.2f})"
        print(f"{mark} {one.name:44} {one.median:6.2f} {span:18} goal {one.goal}")
    print(f"acceptance length {raw['acceptance_length']:.3f} over {raw['verify_rounds']} rounds")
    if options.json:
        record = {"figures": [asdict(one) for one in figures], "raw": raw}
        options.json.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    return 0 if all(one.reached for one in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
