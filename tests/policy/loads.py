"""Made-up loads, and policies driven through them as an engine drives them."""

from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from hypothesis import strategies as st

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
from specserve.policy.observation import Decision, Observation, Policy, RoundCounters

MAX_NUM_STEPS = 3


class Moment(NamedTuple):
    """Running decodes, and the share of them that accepts each next draft token of this round."""

    running: int
    luck: float = 0.5


def drive(policy: Policy, load: Sequence[Moment]) -> list[Decision]:
    """One decision for each moment; the next one sees what came of its round."""
    decisions: list[Decision] = []
    last_round: RoundCounters | None = None
    for index, moment in enumerate(load):
        decision = policy.decide(
            Observation(
                running_decodes=moment.running,
                last_round=last_round,
                elapsed_seconds=0.01 * index,
            )
        )
        decisions.append(decision)
        last_round = play(decision.num_steps, moment) if decision.num_steps else None
    return decisions


def play(num_steps: int, moment: Moment) -> RoundCounters:
    """What comes of a round of that depth."""
    counts = []
    left = moment.running
    for _ in range(num_steps):
        left = round(left * moment.luck)
        counts.append(left)
    return RoundCounters(
        num_steps=num_steps,
        verified=moment.running,
        drafted=num_steps * moment.running,
        accepted_by_position=tuple(counts),
    )


def depths(policy: Policy, running: Sequence[int]) -> list[int]:
    """The depths of rounds with so many running decodes."""
    return [decision.num_steps for decision in drive(policy, [Moment(n) for n in running])]


def switches(taken: Sequence[int]) -> int:
    """Changes of depth; the first depth is none."""
    return sum(a != b for a, b in pairwise(taken))


def table(*lines: tuple[int, int]) -> list[DepthStep]:
    """(up_to, num_steps) of each line."""
    return [DepthStep(up_to=up_to, num_steps=num_steps) for up_to, num_steps in lines]


def bounds(*lines: tuple[int, int], disable_above: int | None = None) -> Bounds:
    return Bounds(schedule=table(*lines), disable_above=disable_above)


NO_BOUNDS = bounds()
MOMENTS = st.builds(Moment, st.integers(0, 12), st.sampled_from([0.0, 0.5, 1.0]))
# Every round anew, or the same for a while, so that estimates settle and looks come due.
LOADS = st.lists(MOMENTS, max_size=150) | st.lists(
    st.tuples(MOMENTS, st.integers(1, 40)), max_size=8
).map(lambda spells: [moment for moment, rounds in spells for _ in range(rounds)])
DWELLS = st.integers(0, 12)


@st.composite
def tables(draw: st.DrawFn, *, min_size: int = 0) -> list[DepthStep]:
    """Any depths, falling or not."""
    ends = draw(st.lists(st.integers(1, 12), unique=True, min_size=min_size, max_size=5))
    steps = draw(st.lists(st.integers(0, MAX_NUM_STEPS), min_size=len(ends), max_size=len(ends)))
    return table(*zip(sorted(ends), steps, strict=True))


BOUNDS = st.builds(Bounds, schedule=tables(), disable_above=st.none() | st.integers(1, 12))
THRESHOLDS = st.builds(
    lambda above, below, dwell: BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=above,
        resume_at=max(above - below, 0),
        min_dwell_rounds=dwell,
        while_off="skip",
    ),
    st.integers(1, 10),
    st.integers(0, 10),
    DWELLS,
)
SCHEDULES = st.builds(
    DepthSchedulePolicy,
    kind=st.just("depth_schedule"),
    schedule=tables(min_size=1),
    hysteresis=st.integers(0, 4),
    min_dwell_rounds=DWELLS,
    while_off=st.just("skip"),
)
ACCEPTANCES = st.builds(
    AcceptancePolicy,
    kind=st.just("acceptance"),
    min_acceptance=st.floats(0.05, 0.8),
    margin=st.floats(0, 0.2),
    window_rounds=st.integers(1, 20),
    explore_every_rounds=st.integers(0, 20),
    bounds=BOUNDS,
    min_dwell_rounds=DWELLS,
    while_off=st.just("skip"),
)
COST_MODELS = st.builds(
    CostModelPolicy,
    kind=st.just("cost_model"),
    calibration=st.just("calibration.json"),
    margin=st.floats(0, 0.3),
    max_inter_token_ms=st.none() | st.floats(1, 30),
    window_rounds=st.integers(1, 20),
    explore_every_rounds=st.integers(0, 20),
    bounds=BOUNDS,
    min_dwell_rounds=DWELLS,
    while_off=st.just("skip"),
)
POLICIES: st.SearchStrategy[PolicyConfig] = st.one_of(
    st.just(OffPolicy(kind="off")),
    st.just(AlwaysPolicy(kind="always")),
    THRESHOLDS,
    SCHEDULES,
    ACCEPTANCES,
    COST_MODELS,
)
