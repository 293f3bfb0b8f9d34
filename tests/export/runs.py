"""Runs to export, made from one composition; and what specserve's own policy does in them."""

from collections.abc import Mapping
from functools import cache
from itertools import chain

from hypothesis import strategies as st

from specserve.config.load import load_run
from specserve.config.policy import (
    BatchThresholdPolicy,
    DepthSchedulePolicy,
    DepthStep,
    PolicyConfig,
)
from specserve.config.run import RunConfig
from specserve.policy.build import make_policy
from specserve.policy.observation import Observation

LARGEST = 600
NUM_STEPS = 6


@cache
def _base() -> RunConfig:
    return load_run(["+experiment=topk1_v2", f"speculation.num_steps={NUM_STEPS}"]).config


def run_with(
    policy: PolicyConfig,
    *,
    limit: int = LARGEST,
    graph_sizes: list[int] | None = None,
    kind: str = "auto",
    speculation: Mapping[str, object] | None = None,
) -> RunConfig:
    """A run with this policy; `graph_sizes` None means auto."""
    base = _base()
    sizes = {"batch_sizes": "auto" if graph_sizes is None else graph_sizes, "kind": kind}
    return base.model_copy(
        update={
            "policy": policy,
            "speculation": base.speculation.model_copy(update=speculation or {}),
            "scheduler": base.scheduler.model_copy(update={"max_running_requests": limit}),
            "cuda_graph": base.cuda_graph.model_copy(update=sizes),
        }
    )


def schedule(
    *lines: tuple[int, int], hysteresis: int = 0, dwell: int = 0, while_off: str = "warm"
) -> DepthSchedulePolicy:
    return DepthSchedulePolicy.model_validate(
        {
            "kind": "depth_schedule",
            "schedule": [DepthStep(up_to=up_to, num_steps=depth) for up_to, depth in lines],
            "hysteresis": hysteresis,
            "min_dwell_rounds": dwell,
            "while_off": while_off,
        }
    )


def threshold(
    above: int, *, resume: int | None = None, dwell: int = 0, while_off: str = "warm"
) -> BatchThresholdPolicy:
    return BatchThresholdPolicy.model_validate(
        {
            "kind": "batch_threshold",
            "disable_above": above,
            "resume_at": above if resume is None else resume,
            "min_dwell_rounds": dwell,
            "while_off": while_off,
        }
    )


@st.composite
def schedules(draw: st.DrawFn, *, shallow_start: bool = True) -> DepthSchedulePolicy:
    """Tables of up to eight lines, some of them equal neighbours; at least one speculates."""
    ends = sorted(draw(st.sets(st.integers(1, LARGEST + 50), min_size=1, max_size=8)))
    depths = [draw(st.integers(0, NUM_STEPS)) for _ in ends]
    if not shallow_start or not any(depths):
        depths[0] = max(1, *depths)
    return schedule(*zip(ends, depths, strict=True))


def policy_steps(policy: PolicyConfig) -> dict[int, int]:
    """What specserve decides at 1 … LARGEST running decodes, on the way up and on the way down."""
    own = make_policy(policy, NUM_STEPS)
    steps: dict[int, int] = {}
    for running in chain(range(1, LARGEST + 1), range(LARGEST, 0, -1)):
        observation = Observation(running_decodes=running, last_round=None, elapsed_seconds=0.0)
        depth = own.decide(observation).num_steps
        assert depth == steps.setdefault(running, depth)
    return steps
