"""How long each kind of policy takes to decide a round, on a load that walks up and down.

    python scripts/bench_policy.py [--rounds 20000] [--json bench/policy_cpu.json]

A decision stands between two rounds of the engine, so it has to be short: the goal is a median of
20 µs at the deepest round that can be built, 16 steps.
"""

import argparse
import json
import os
import platform
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from itertools import pairwise
from pathlib import Path

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    Bounds,
    CostModelPolicy,
    DepthSchedulePolicy,
    DepthStep,
    OffPolicy,
    PolicyConfig,
)
from specserve.policy.build import make_policy
from specserve.policy.observation import Observation, RoundCounters
from specserve.testing.calibrations import make_calibration

GOAL_MICROSECONDS = 20.0
NUM_STEPS = 16
BATCH_SIZES = (1, 2, 4, 8, 16, 32, 64, 128, 256)
CALIBRATION = make_calibration(
    batch_sizes=BATCH_SIZES,
    round_seconds={
        depth: [0.01 + 0.001 * depth + 0.00002 * size * (1 + depth) for size in BATCH_SIZES]
        for depth in range(NUM_STEPS + 1)
    },
    acceptance=[0.8 ** (position + 1) for position in range(NUM_STEPS)],
)
TABLE = [DepthStep(up_to=2 ** (8 - step), num_steps=step) for step in range(8, 0, -1)]
BOUNDS = Bounds(schedule=[DepthStep(up_to=192, num_steps=NUM_STEPS)], disable_above=224)
POLICIES: tuple[PolicyConfig, ...] = (
    OffPolicy(kind="off"),
    AlwaysPolicy(kind="always"),
    BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=64,
        resume_at=48,
        min_dwell_rounds=8,
        while_off="skip",
    ),
    DepthSchedulePolicy(
        kind="depth_schedule", schedule=TABLE, hysteresis=1, min_dwell_rounds=8, while_off="skip"
    ),
    AcceptancePolicy(
        kind="acceptance",
        min_acceptance=0.3,
        margin=0.05,
        window_rounds=64,
        explore_every_rounds=512,
        bounds=BOUNDS,
        min_dwell_rounds=8,
        while_off="skip",
    ),
    CostModelPolicy(
        kind="cost_model",
        calibration="made up",
        margin=0.03,
        max_inter_token_ms=50.0,
        window_rounds=64,
        explore_every_rounds=512,
        bounds=BOUNDS,
        min_dwell_rounds=8,
        while_off="skip",
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Figure:
    """Microseconds of one decision."""

    kind: str
    median: float
    percentile_99: float
    rounds: int
    switches: int

    @property
    def reached(self) -> bool:
        """Whether the median meets the goal."""
        return self.median <= GOAL_MICROSECONDS


def walk(num_rounds: int) -> Iterator[int]:
    """Running decodes: from 1 to 256 and back, over and over."""
    for index in range(num_rounds):
        place = index // 8 % 510
        yield 1 + (place if place < 255 else 510 - place)


def outcome(num_steps: int, running: int, index: int) -> RoundCounters | None:
    """What came of the round, with an acceptance that wanders."""
    if num_steps == 0:
        return None
    chance = 0.75 + 0.2 * (index // 1000 % 2)
    return RoundCounters(
        num_steps=num_steps,
        verified=running,
        drafted=running * num_steps,
        accepted_by_position=tuple(int(running * chance ** (i + 1)) for i in range(num_steps)),
    )


def measure(config: PolicyConfig, num_rounds: int) -> Figure:
    """Time every decision of one walk."""
    policy = make_policy(config, NUM_STEPS, CALIBRATION)
    times: list[int] = []
    taken: list[int] = []
    last_round: RoundCounters | None = None
    for index, running in enumerate(walk(num_rounds)):
        observation = Observation(
            running_decodes=running, last_round=last_round, elapsed_seconds=0.01 * index
        )
        began = time.perf_counter_ns()
        decision = policy.decide(observation)
        times.append(time.perf_counter_ns() - began)
        taken.append(decision.num_steps)
        last_round = outcome(decision.num_steps, running, index)
    return Figure(
        kind=config.kind,
        median=statistics.median(times) / 1000,
        percentile_99=statistics.quantiles(times, n=100)[98] / 1000,
        rounds=num_rounds,
        switches=sum(a != b for a, b in pairwise(taken)),
    )


def report(figures: Sequence[Figure]) -> None:
    """One line for each kind."""
    for one in figures:
        mark = "ok    " if one.reached else "MISSED"
        print(
            f"{mark} {one.kind:16} median {one.median:6.2f} µs  99 % {one.percentile_99:6.2f} µs  "
            f"{one.switches} switches in {one.rounds} rounds  goal <= {GOAL_MICROSECONDS:g} µs"
        )


def main() -> int:
    """Print the figures; 1 if a goal is missed."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--rounds", type=int, default=20_000)
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    options = parser.parse_args()
    figures = [measure(config, options.rounds) for config in POLICIES]
    report(figures)
    if options.json:
        record = {
            "figures": [asdict(one) for one in figures],
            "python": sys.version.split()[0],
            "processor": platform.processor() or platform.machine(),
            "cores": os.cpu_count(),
        }
        options.json.write_text(json.dumps(record, indent=2) + "\n", "utf-8")
    return 0 if all(one.reached for one in figures) else 1


if __name__ == "__main__":
    raise SystemExit(main())
