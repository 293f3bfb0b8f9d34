"""The torch engine on a GPU: graphs against no graphs, speculation against plain, all in one run.

    python scripts/gpu_check.py [--json bench/h200/engine_gpu.json]

Outputs must be equal token for token (float32, greedy); speeds are ratios within a repeat.
"""

import argparse
import json
import statistics
from pathlib import Path
from typing import Any

import torch
from engine_arms import Arm, held_out_prompts, make_arm

ARMS = {
    "plain, no graphs": ["+experiment=baseline", "cuda_graph=off"],
    "plain": ["+experiment=baseline"],
    "chain of 3, no graphs": ["+experiment=topk1_v2", "policy=always", "cuda_graph=off"],
    "chain of 3": ["+experiment=topk1_v2", "policy=always"],
    "chain of 3, sync": ["+experiment=topk1_v2", "policy=always", "scheduler=sync"],
    "tree of 4": ["+experiment=topk4_v1"],
    "depths by batch size": ["+experiment=topk1_v2", "policy=depth_schedule"],
}


def main() -> int:
    """Print outputs' equality and the ratios; 1 if an output differs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--json", type=Path, help="write everything to this file")
    options = parser.parse_args()
    prompts = held_out_prompts(16)
    arms = {name: make_arm(overrides) for name, overrides in ARMS.items()}
    expected = arms["plain, no graphs"].outputs(prompts[:1], options.tokens) + [
        arms["plain, no graphs"].outputs([prompt], options.tokens)[0] for prompt in prompts[1:]
    ]
    unequal = {
        name: _num_unequal(arm, prompts, expected, options.tokens) for name, arm in arms.items()
    }
    rates: dict[str, dict[str, list[float]]] = {name: {"1": [], "16": []} for name in arms}
    for _ in range(options.repeats):
        for name, arm in arms.items():
            rates[name]["1"].append(arm.generate_each(prompts[:4], options.tokens))
            rates[name]["16"].append(arm.generate(prompts, options.tokens))
    for name, arm in arms.items():
        row = [f"{name:24}", f"unequal outputs {unequal[name]:2d} of {2 * len(prompts)}"]
        for concurrency, found in rates[name].items():
            ratio = statistics.median(
                a / b for a, b in zip(found, rates["plain, no graphs"][concurrency], strict=True)
            )
            row.append(f"at {concurrency}: {ratio:5.2f} x plain without graphs")
        length = arm.loop.stats().acceptance_length
        row.append(f"acceptance length {length:.2f}" if length else "")
        print("  ".join(row))
    if options.json:
        record: dict[str, Any] = {
            "gpu": torch.cuda.get_device_name(),
            "torch": str(torch.__version__),
            "unequal": unequal,
            "rates": rates,
            "phases": {
                name: [
                    {"phase": r.phase, "event": r.event, "seconds": r.seconds, "details": r.details}
                    for r in arm.records
                    if r.event != "start"
                ]
                for name, arm in arms.items()
            },
        }
        options.json.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    return 1 if any(unequal.values()) else 0


def _num_unequal(
    arm: Arm, prompts: list[tuple[int, ...]], expected: list[list[int]], num_tokens: int
) -> int:
    """Outputs that differ from `expected`, alone and all at once."""
    alone = [arm.outputs([prompt], num_tokens)[0] for prompt in prompts]
    together = arm.outputs(prompts, num_tokens)
    return sum(a != b for a, b in zip([*alone, *together], [*expected, *expected], strict=True))


if __name__ == "__main__":
    raise SystemExit(main())
