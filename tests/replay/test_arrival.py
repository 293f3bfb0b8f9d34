from functools import partial

import pytest

from specserve.config.policy import AcceptancePolicy, BatchThresholdPolicy, Bounds
from specserve.policy.build import make_policy
from specserve.replay.arrival import arrivals


@pytest.mark.parametrize("dwell", [0, 5])
@pytest.mark.parametrize(
    ("running", "expected"), [(6, [3, 3]), (7, [3, 0]), (8, [3, 0]), (9, [0, 0])]
)
def test_between_the_thresholds_it_matters_where_the_load_comes_from(
    running: int, expected: list[int], dwell: int
) -> None:
    config = BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=8,
        resume_at=6,
        min_dwell_rounds=dwell,
        while_off="skip",
    )
    found = arrivals(partial(make_policy, config, 3), running, (1, 16), None, dwell)

    assert expected == [arrival.decision.num_steps for arrival in found]
    assert [(1, 3), (16, 0)] == [(arrival.coming_from, arrival.from_depth) for arrival in found]
    assert all("last switch holds" not in arrival.decision.reason for arrival in found)


@pytest.mark.parametrize(("acceptance", "depth"), [((0.9, 0.8, 0.7), 3), ((0.9, 0.6, 0.1), 2)])
def test_what_a_policy_has_seen_outweighs_what_it_assumed(
    acceptance: tuple[float, ...], depth: int
) -> None:
    config = AcceptancePolicy(
        kind="acceptance",
        min_acceptance=0.5,
        margin=0.05,
        window_rounds=1000,
        explore_every_rounds=0,
        bounds=Bounds(schedule=[], disable_above=None),
        min_dwell_rounds=0,
        while_off="skip",
    )
    (found,) = arrivals(partial(make_policy, config, 3), 4, (1,), acceptance, 0)

    assert depth == found.decision.num_steps
