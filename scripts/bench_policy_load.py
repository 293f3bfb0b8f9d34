"""Policies on the torch engine, under a load that walks from 1 request to 16 and back.

    python scripts/bench_policy_load.py calibrate --out bench/calibration_cpu.json
    python scripts/bench_policy_load.py run --calibration bench/calibration_cpu.json \
        --json bench/policy_load_cpu.json

`run` compares each policy with the better of `off` (no draft is even loaded) and `always` (the
chain of 3 that conf/ declares), in the same repeat; and also with the calibration's deepest chain,
which is what the policies are built for. Each arm has a process of its own; they take turns, in
another order each repeat. A figure is a ratio within a repeat, shown as the median with the least
and the most.
"""

import argparse
import json
import os
import statistics
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass
from itertools import chain, groupby, repeat
from pathlib import Path

import torch
from arm_process import ArmProcess, Result, serve_runs
from engine_arms import held_out_prompts, make_arm
from policy_load.round_times import make_calibration, measure_acceptance, measure_point, processor
from policy_load.walk import LEAST_TOKENS, LEVELS, MOST_TOKENS, make_walk, run_walk

from specserve.calibration.read import read_calibration, save_calibration
from specserve.calibration.table import Calibration
from specserve.replay.costs import Costs, best_depth

BATCH_SIZES = (1, 2, 4, 6, 8, 12, 16)
NUM_PROMPTS = 64
# The static arms that a policy is compared with: the chain of 3 that conf/ declares, which is the
# goal, and the chain that is as deep as the policies may go.
ALWAYS, DEEPEST = "always", "always_deepest"
BASELINES = {f"off and {name}": ("off", name) for name in (ALWAYS, DEEPEST)}
POLICIES = ("batch_threshold", "depth_schedule", "cost_model")
SPECULATES = "+experiment=topk1_v2"


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """A policy's tokens/s over those of the better static arm, over the repeats.

    `level` None is the whole load.
    """

    policy: str
    baseline: str
    level: int | None
    median: float
    least: float
    most: float


def calibrate(options: argparse.Namespace) -> int:
    """Measure all points in turns, `repeats` times, and write the table."""
    prompts = held_out_prompts(NUM_PROMPTS)
    depth = f"speculation.num_steps={options.num_steps}"
    arm = make_arm([SPECULATES, f"scheduler={options.scheduler}", depth])
    # It comes first because it also warms up.
    acceptance = measure_acceptance(arm, prompts, options.num_steps, options.tokens)
    points = []
    for turn in range(options.repeats):
        for size in BATCH_SIZES:
            first = turn * size % (NUM_PROMPTS - size + 1)
            batch = prompts[first : first + size]
            for num_steps in range(options.num_steps + 1):
                points.append(measure_point(arm, batch, num_steps, options.tokens))
    command = (
        f"python scripts/bench_policy_load.py calibrate --scheduler {options.scheduler} "
        f"--num-steps {options.num_steps} --tokens {options.tokens} --repeats {options.repeats}"
    )
    lengths = [len(prompt) for prompt in prompts]
    workload = (
        f"held-out prompts, {min(lengths)} to {max(lengths)} tokens in, {options.tokens} out, "
        f"greedy, scheduler={options.scheduler}"
    )
    found = make_calibration(points, acceptance, arm, workload=workload, command=command)
    save_calibration(found, options.out)
    show_calibration(found)
    return 0


def show_calibration(calibration: Calibration) -> None:
    """Milliseconds a round, and which depth they make the best one."""
    costs = Costs(calibration, calibration.depths[-1].num_steps)
    print("acceptance by position", *(f"{chance:.3f}" for chance in calibration.acceptance))
    for column, size in enumerate(calibration.batch_sizes):
        times = [1e3 * depth.round_seconds[column] for depth in calibration.depths]
        rounds = costs.rounds(size, calibration.acceptance)
        print(
            f"{size:3d} running:",
            *(f"{milliseconds:6.2f}" for milliseconds in times),
            "ms, tokens/s",
            *(f"{one.rate:5.0f}" for one in rounds.values()),
            f"best num_steps={best_depth(rounds)}",
        )


def make_arms(calibration: Calibration, path: Path) -> dict[str, list[str]]:
    """The overrides of each arm; thresholds and depths as the calibration shows them."""
    most = max(LEVELS)
    costs = Costs(calibration, calibration.depths[-1].num_steps)
    rounds = [costs.rounds(n, calibration.acceptance) for n in range(1, most + 1)]
    deepest = costs.depths[-1]
    pays = [one[deepest].rate >= one[0].rate for one in rounds]
    break_even = max((n for n in range(1, most + 1) if all(pays[:n])), default=1)
    lines = []
    for num_steps, group in groupby(enumerate(rounds, start=1), lambda one: best_depth(one[1])):
        lines.append(f"{{up_to: {list(group)[-1][0]}, num_steps: {num_steps}}}")
    speculates = [SPECULATES, f"speculation.num_steps={deepest}"]
    threshold = [f"policy.disable_above={break_even}", f"policy.resume_at={max(break_even - 2, 0)}"]
    return {
        "off": ["+experiment=baseline"],
        ALWAYS: [SPECULATES, "policy=always"],
        DEEPEST: [*speculates, "policy=always"],
        "batch_threshold": [*speculates, "policy=batch_threshold", *threshold],
        "depth_schedule": [
            *speculates,
            "policy=depth_schedule",
            f"policy.schedule=[{', '.join(lines)}]",
        ],
        "cost_model": [*speculates, "policy=cost_model", f"policy.calibration={path}"],
    }


def run(options: argparse.Namespace) -> int:
    """Print each policy's figures; 1 if none keeps up with the better static arm."""
    arms = make_arms(read_calibration(str(options.calibration)), options.calibration)
    for name, overrides in arms.items():
        overrides.append(f"scheduler={options.scheduler}")
        overrides += options.policy_overrides if name in POLICIES else []
        print(f"{name}: {' '.join(overrides)}")
    results = measure(options, arms)
    unequal = count_unequal(results)
    found = [
        figure(policy, baseline, level, results)
        for baseline in BASELINES
        for policy in POLICIES
        for level in (None, *sorted(set(LEVELS)))
    ]
    show(found, results, unequal)
    if options.json:
        record = {
            "figures": [asdict(one) for one in found],
            "unequal_outputs": unequal,
            "load": f"levels {LEVELS}, {LEAST_TOKENS} to {MOST_TOKENS} tokens each",
            "arms": arms,
            "results": results,
            "torch": str(torch.__version__),
            "processor": processor(),
            "cores": os.cpu_count(),
        }
        options.json.write_text(json.dumps(record, indent=1) + "\n", "utf-8")
    goal = [one for one in found if one.level is None and ALWAYS in BASELINES[one.baseline]]
    best = max(one.median for one in goal)
    return 0 if best >= 1.0 and not any(unequal.values()) else 1


def measure(
    options: argparse.Namespace, arms: Mapping[str, Sequence[str]]
) -> dict[str, list[Result]]:
    """Each arm's results, after a short run of each that warms it up."""
    results: dict[str, list[Result]] = {name: [] for name in arms}
    size = ["--requests-per-place", str(options.requests_per_place)]
    with ExitStack() as stack:
        processes = {}
        for name, overrides in arms.items():
            processes[name] = ArmProcess([__file__, "serve", *size, *overrides])
            stack.callback(processes[name].close)
        for process in processes.values():
            process.run()
        names = list(arms)
        for turn in range(options.repeats):
            first = turn % len(names)
            for name in names[first:] + names[:first]:
                results[name].append(processes[name].run())
            rates = [f"{name} {found[-1]['rate']:.0f}/s" for name, found in results.items()]
            print(f"repeat {turn + 1}: " + "  ".join(rates), flush=True)
    return results


def serve(options: argparse.Namespace) -> int:
    """An arm's own process: the whole walk for each run but the first, which warms up."""
    arm = make_arm(options.overrides)
    items = make_walk(held_out_prompts(NUM_PROMPTS), options.requests_per_place)
    walks = chain([items[::4]], repeat(items))
    serve_runs(lambda: run_walk(arm, next(walks)))
    return 0


def count_unequal(results: Mapping[str, list[Result]]) -> dict[str, int]:
    """Outputs of each arm that differ from those of `off`; takes the outputs out of the results."""
    outputs = {name: [one.pop("outputs") for one in found] for name, found in results.items()}
    expected = outputs["off"][0]
    return {
        name: sum(a != b for one in found for a, b in zip(one, expected, strict=True))
        for name, found in outputs.items()
    }


def figure(
    policy: str, baseline: str, level: int | None, results: Mapping[str, list[Result]]
) -> Figure:
    """Over the whole load, or at one level of it."""

    def rates(name: str) -> list[float]:
        if level is None:
            return [one["rate"] for one in results[name]]
        found = [one["levels"][str(level)] for one in results[name]]
        return [one["tokens"] / one["seconds"] for one in found]

    better = [max(pair) for pair in zip(*map(rates, BASELINES[baseline]), strict=True)]
    ratios = [own / best for own, best in zip(rates(policy), better, strict=True)]
    return Figure(
        policy=policy,
        baseline=baseline,
        level=level,
        median=statistics.median(ratios),
        least=min(ratios),
        most=max(ratios),
    )


def show(
    found: Sequence[Figure], results: Mapping[str, list[Result]], unequal: Mapping[str, int]
) -> None:
    """As text."""
    print("\ntokens/s over the better static arm in the same repeat, median (least to most)")
    for (baseline, policy), own in groupby(found, lambda one: (one.baseline, one.policy)):
        overall, *by_level = own
        switches = statistics.median(one["switches"] for one in results[policy])
        print(
            f"{policy:16} over the better of {baseline}: {overall.median:.3f}",
            f"({overall.least:.3f} to {overall.most:.3f}), {switches:g} switches; at",
            ", ".join(f"{one.level}: {one.median:.2f}" for one in by_level),
        )
    for name, ones in results.items():
        depths = []
        for level in sorted(set(LEVELS)):
            steps = ones[-1]["levels"][str(level)]["steps_by_depth"]
            most = max(steps, key=steps.__getitem__)
            depths.append(f"{level}: {most} ({steps[most] / sum(steps.values()):.0%})")
        print(f"{name:16} most frequent num_steps at", ", ".join(depths))
    print("outputs that differ from those of off:", dict(unequal))


def main() -> int:
    """Run the asked command; its exit status."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    commands = parser.add_subparsers(required=True)
    table = commands.add_parser("calibrate", help="measure round times and acceptance")
    table.add_argument("--out", type=Path, required=True, help="calibration file to write")
    table.add_argument("--num-steps", type=int, default=5, help="the deepest depth")
    table.add_argument("--tokens", type=int, default=80, help="of each request")
    table.add_argument("--repeats", type=int, default=5)
    table.set_defaults(command=calibrate)
    walk = commands.add_parser("run", help="compare policies under the load")
    walk.add_argument("--calibration", type=Path, required=True)
    walk.add_argument("--repeats", type=int, default=5)
    walk.add_argument("--json", type=Path, help="write figures and raw results to this file")
    walk.add_argument(
        "policy_overrides", nargs="*", help="for the policies' arms: policy.while_off=warm"
    )
    walk.set_defaults(command=run)
    arm = commands.add_parser("serve", help="an arm's own process")
    arm.add_argument("overrides", nargs="*")
    arm.set_defaults(command=serve)
    for one in (table, walk):
        one.add_argument("--scheduler", choices=("sync", "overlap"), default="sync")
    for one in (walk, arm):
        one.add_argument("--requests-per-place", type=int, default=1, help="length of the walk")
    options = parser.parse_args()
    status: int = options.command(options)
    return status


if __name__ == "__main__":
    raise SystemExit(main())
