"""Round times of the torch engine, by batch size and depth, as a calibration.

One worker is built for the deepest round, and its depth is pinned from outside. So each depth costs
what it costs a policy that may choose any of them; depth 0 keeps what a draft needs to resume.
"""

import datetime
import platform
import statistics
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from engine_arms import Arm, greedy_request

from specserve.calibration.table import Calibration, DepthTimes, Provenance
from specserve.config.policy import DepthSchedulePolicy, DepthStep, OffPolicy, PolicyConfig
from specserve.plan import SpeculationPlan

Prompts = Sequence[tuple[int, ...]]
VERSIONS = ("specserve", "torch", "transformers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """The rounds of one run in which all of `batch_size` requests decoded, none of them ending."""

    num_steps: int
    batch_size: int
    round_seconds: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Acceptance:
    """`accepted_by_position` as in `EngineStats`, of `verified` requests and rounds."""

    verified: int
    accepted_by_position: tuple[int, ...]


def measure_acceptance(arm: Arm, prompts: Prompts, num_steps: int, num_tokens: int) -> Acceptance:
    """Over whole outputs: a request is easier to draft for at some places than at others."""
    arm.loop.set_policy(_pinned(num_steps, len(prompts)))
    before = arm.loop.stats()
    arm.outputs(prompts, num_tokens)
    after = arm.loop.stats()
    totals = zip(after.accepted_by_position, before.accepted_by_position, strict=True)
    return Acceptance(
        verified=after.verify_rounds - before.verify_rounds,
        accepted_by_position=tuple(new - old for new, old in totals),
    )


def measure_point(arm: Arm, prompts: Prompts, num_steps: int, num_tokens: int) -> Point:
    """Serve all prompts at once at depth `num_steps`, until the first has its `num_tokens`."""
    loop = arm.loop
    loop.set_policy(_pinned(num_steps, len(prompts)))
    for index, prompt in enumerate(prompts):
        loop.submit(greedy_request(str(index), prompt, num_tokens))
    while loop.stats().running_decodes < len(prompts):
        loop.step()
    seconds = []
    while True:
        began = time.perf_counter()
        chunks = loop.step()
        elapsed = time.perf_counter() - began
        if any(chunk.finish_reason for chunk in chunks):
            break
        seconds.append(elapsed)
    for index in range(len(prompts)):
        loop.abort(str(index))
    while loop.has_work:
        loop.step()
    return Point(num_steps=num_steps, batch_size=len(prompts), round_seconds=tuple(seconds))


def make_calibration(
    points: Sequence[Point], acceptance: Acceptance, arm: Arm, *, workload: str, command: str
) -> Calibration:
    """The median over the runs of a run's median round. `acceptance` is the deepest depth's."""
    depths = sorted({point.num_steps for point in points})
    batch_sizes = sorted({point.batch_size for point in points})

    def seconds(num_steps: int, batch_size: int) -> float:
        return statistics.median(
            statistics.median(point.round_seconds)
            for point in points
            if (point.num_steps, point.batch_size) == (num_steps, batch_size)
        )

    return Calibration(
        format="specserve-calibration-1",
        provenance=_provenance(arm, workload, command),
        topk=_built(arm).topk,
        batch_sizes=tuple(batch_sizes),
        depths=tuple(
            DepthTimes(num_steps=k, round_seconds=tuple(seconds(k, n) for n in batch_sizes))
            for k in depths
        ),
        verified=acceptance.verified,
        accepted_by_position=acceptance.accepted_by_position,
    )


def processor() -> str:
    """The processor's name, as the system gives it."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text("utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return next(iter(names), platform.processor() or platform.machine())


def _pinned(num_steps: int, batch_size: int) -> PolicyConfig:
    """A policy that keeps to one depth."""
    if num_steps == 0:
        return OffPolicy(kind="off")
    return DepthSchedulePolicy(
        kind="depth_schedule",
        schedule=[DepthStep(up_to=batch_size, num_steps=num_steps)],
        hysteresis=0,
        min_dwell_rounds=0,
        while_off="refill",
    )


def _provenance(arm: Arm, workload: str, command: str) -> Provenance:
    facts, plan = arm.facts, arm.plan
    if facts.target is None or facts.draft is None:
        raise ValueError("the arm's checkpoints are not on this machine")
    versions = {name: facts.versions[name] for name in VERSIONS}
    return Provenance(
        device=f"{processor()}, {plan.num_threads} of {facts.machine.cpu_count} cores",
        driver=None,
        engine="torch",
        versions={**versions, "python": platform.python_version()},
        attention=plan.attention,
        target=plan.target.name,
        target_hash=facts.target.sha256,
        draft="/".join(Path(_built(arm).draft.path).parts[-2:]),
        draft_hash=facts.draft.sha256,
        workload=workload,
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        command=command,
    )


def _built(arm: Arm) -> SpeculationPlan:
    if arm.plan.speculation is None:
        raise ValueError("the arm was built without a draft")
    return arm.plan.speculation
