"""Depths are the policy's own: asked as an engine asks, the load rising and falling."""

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import pytest

from specserve.calibration.read import read_calibration
from specserve.config.load import load_run
from specserve.config.policy import SwitchingPolicy
from specserve.config.run import RunConfig
from specserve.policy.build import make_policy
from specserve.replay.arrival import arrivals
from specserve.review.depths import Depth, DepthRow, LoadDepths, depth_rows, depths_by_load

CALIBRATION = Path(__file__).parent.parent / "data/calibration.json"
CHAIN = ["speculation=eagle3_topk1", "scheduler.max_running_requests=12"]


def _config(*overrides: str) -> RunConfig:
    return load_run([*CHAIN, *overrides]).config


def _depths(config: RunConfig) -> tuple[Depth, ...]:
    found = depths_by_load(config, None)
    assert found is not None
    return found.depths


def _loads(*depths: tuple[int, int]) -> LoadDepths:
    return LoadDepths(depths=tuple(Depth(*depth) for depth in depths), assumes="")


SCHEDULE = "policy.schedule=[{up_to: 2, num_steps: 3}, {up_to: 9, num_steps: 1}]"


@pytest.mark.parametrize(
    ("overrides", "rising", "falling"),
    [
        (["policy=off"], [0] * 12, [0] * 12),
        (["policy=always"], [3] * 12, [3] * 12),
        (
            ["policy=batch_threshold", "policy.disable_above=8", "policy.resume_at=6"],
            [3] * 8 + [0] * 4,
            [3] * 6 + [0] * 6,
        ),
        (
            ["policy=depth_schedule", SCHEDULE, "policy.hysteresis=1"],
            [3] * 2 + [1] * 7 + [0] * 3,
            [3] * 1 + [1] * 7 + [0] * 4,
        ),
        (["policy=acceptance"], None, None),
    ],
)
def test_depth_follows_the_load_with_its_hysteresis(
    overrides: Sequence[str], rising: list[int] | None, falling: list[int] | None
) -> None:
    depths = _depths(_config(*overrides))

    assert 12 == len(depths)
    if rising is not None and falling is not None:
        assert (rising, falling) == ([d.rising for d in depths], [d.falling for d in depths])


@pytest.mark.parametrize(
    "overrides",
    [
        ["policy=batch_threshold"],
        ["policy=cost_model", f"policy.calibration={CALIBRATION}"],
    ],
    ids=["batch_threshold", "cost_model"],
)
def test_it_is_what_explain_policy_says_of_every_single_load(overrides: Sequence[str]) -> None:
    """The two ask in different ways; only a table of depths minds a load that falls all at once."""
    config = _config(*overrides)
    policy = config.policy
    assert isinstance(policy, SwitchingPolicy)
    changes = {"explore_every_rounds": 0} if hasattr(policy, "explore_every_rounds") else {}
    report = depths_by_load(config, None)
    assert report is not None
    calibration = read_calibration(str(CALIBRATION)) if policy.kind == "cost_model" else None
    for running, depth in enumerate(report.depths, 1):
        low, high = arrivals(
            partial(make_policy, policy.model_copy(update=changes), 3, calibration),
            running,
            others=(1, 64),
            acceptance=calibration.acceptance if calibration else None,
            dwell=policy.min_dwell_rounds,
        )
        assert (low.decision.num_steps, high.decision.num_steps) == (depth.rising, depth.falling)


def test_what_the_depths_assume_is_said() -> None:
    acceptance = depths_by_load(_config("policy=acceptance"), None)
    threshold = depths_by_load(_config("policy=batch_threshold"), None)
    assert acceptance is not None
    assert threshold is not None

    assert "every drafted token" in acceptance.assumes
    assert "" == threshold.assumes


def test_without_its_calibration_a_cost_model_has_no_depths() -> None:
    config = _config("policy=cost_model", "policy.calibration=/nowhere.json")

    assert depths_by_load(config, None) is None


def test_loads_of_equal_depths_are_one_row() -> None:
    before, after = _loads((3, 3), (3, 3), (0, 0)), _loads((3, 3), (3, 0), (3, 0), (0, 0))

    assert [
        DepthRow(first=1, last=1, before=Depth(3, 3), after=Depth(3, 3)),
        DepthRow(first=2, last=2, before=Depth(3, 3), after=Depth(3, 0)),
        DepthRow(first=3, last=3, before=Depth(0, 0), after=Depth(3, 0)),
        DepthRow(first=4, last=4, before=None, after=Depth(0, 0)),
    ] == depth_rows(before, after)
    assert ["1 to 2", "3"] == [str(row) for row in depth_rows(before, before)]
    assert [] == depth_rows(None, None)
