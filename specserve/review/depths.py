"""The depth that a policy takes at each load, while the load rises and while it falls.

It rises and falls by one request at a time, as a busy server's does.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import assert_never

from specserve.calibration.read import read_calibration
from specserve.calibration.table import Calibration
from specserve.config.policy import AcceptancePolicy, CostModelPolicy, PolicyConfig, SwitchingPolicy
from specserve.config.run import RunConfig
from specserve.config.speculation import (
    DflashSpeculation,
    Eagle3Speculation,
    EagleSpeculation,
    MtpSpeculation,
    NgramSpeculation,
    NoSpeculation,
    SpeculationConfig,
    StandaloneSpeculation,
)
from specserve.errors import ConfigError
from specserve.plan import Plan
from specserve.policy.build import make_policy
from specserve.policy.observation import Observation, RoundCounters

_MANY = 1_000_000  # requests whose outcome outweighs whatever a policy assumed before


@dataclass(frozen=True, slots=True)
class Depth:
    """`num_steps` with so many running decodes, coming from fewer and coming from more."""

    rising: int
    falling: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadDepths:
    """`depths[i]` is taken with i + 1 running decodes, up to the admission limit.

    `assumes` says in words what the depths depend on beside the load; empty if on nothing.
    """

    depths: tuple[Depth, ...]
    assumes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class DepthRow:
    """`first` to `last` running decodes, inclusive; None where a side admits no such load."""

    first: int
    last: int
    before: Depth | None
    after: Depth | None

    def __str__(self) -> str:
        return str(self.first) if self.first == self.last else f"{self.first} to {self.last}"


def depths_by_load(config: RunConfig, plan: Plan | None) -> LoadDepths | None:
    """As the policy itself decides when it is asked, each depth having lasted its dwell.

    None if its calibration cannot be read.
    """
    policy = _without_pace(config.policy)
    try:
        calibration = plan.calibration if plan else _calibration(policy)
    except ConfigError:
        return None
    built = plan.speculation.num_steps if plan and plan.speculation else _built(config.speculation)
    seen = _seen(calibration, built)
    limit = config.scheduler.max_running_requests
    rising = _decide(policy, built, calibration, seen, range(1, limit + 1))
    falling = _decide(policy, built, calibration, seen, range(limit, 0, -1))
    return LoadDepths(depths=tuple(map(Depth, rising, reversed(falling))), assumes=_assumes(policy))


def depth_rows(before: LoadDepths | None, after: LoadDepths | None) -> list[DepthRow]:
    """Both sides over the same loads, equal neighbours together."""
    one = before.depths if before else ()
    other = after.depths if after else ()
    loads = [(n, _at(one, n), _at(other, n)) for n in range(1, max(len(one), len(other)) + 1)]
    rows = []
    for _, group in groupby(loads, key=lambda load: load[1:]):
        same = list(group)
        (first, was, now), (last, _, _) = same[0], same[-1]
        rows.append(DepthRow(first=first, last=last, before=was, after=now))
    return rows


def _at(depths: Sequence[Depth], running_decodes: int) -> Depth | None:
    return depths[running_decodes - 1] if running_decodes <= len(depths) else None


def _decide(
    policy: PolicyConfig,
    built: int,
    calibration: Calibration | None,
    seen: RoundCounters | None,
    loads: Sequence[int],
) -> list[int]:
    asked = make_policy(policy, built, calibration)
    looks = [
        Observation(running_decodes=load, last_round=seen, elapsed_seconds=0.0) for load in loads
    ]
    asked.decide(looks[0])  # the first round knows no depth before it
    return [asked.decide(look).num_steps for look in looks]


def _without_pace(policy: PolicyConfig) -> PolicyConfig:
    """Neither a dwell that has not passed yet, nor a look now and then, is the answer."""
    changes = {"min_dwell_rounds": 0} if isinstance(policy, SwitchingPolicy) else {}
    if isinstance(policy, AcceptancePolicy | CostModelPolicy):
        changes["explore_every_rounds"] = 0
    return policy.model_copy(update=changes)


def _calibration(policy: PolicyConfig) -> Calibration | None:
    return read_calibration(policy.calibration) if isinstance(policy, CostModelPolicy) else None


def _seen(calibration: Calibration | None, built: int) -> RoundCounters | None:
    """What has been accepted so far: as in the calibration."""
    acceptance = calibration.acceptance[:built] if calibration else ()
    if not acceptance:
        return None
    return RoundCounters(
        num_steps=len(acceptance),
        verified=_MANY,
        drafted=_MANY * len(acceptance),
        accepted_by_position=tuple(round(_MANY * chance) for chance in acceptance),
    )


def _assumes(policy: PolicyConfig) -> str:
    if isinstance(policy, AcceptancePolicy):
        return "as if every drafted token were accepted, which is how the policy begins"
    if isinstance(policy, CostModelPolicy):
        return "at the calibration's acceptance"
    return ""


def _built(speculation: SpeculationConfig) -> int:
    """The deepest round, as far as the configuration alone says it."""
    match speculation:
        case NoSpeculation():
            return 0
        case Eagle3Speculation() | EagleSpeculation() | MtpSpeculation() | StandaloneSpeculation():
            return speculation.num_steps
        case NgramSpeculation():
            return speculation.num_draft_tokens - 1
        case DflashSpeculation():
            tokens = speculation.num_draft_tokens
            return 1 if tokens == "auto" else tokens - 1
        case _:
            assert_never(speculation)
