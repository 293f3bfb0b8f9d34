"""The benchmark measures every kind of policy, and says so if one is too slow."""

import typing

import bench_policy
import pytest

from specserve.config.policy import PolicyConfig


def test_every_kind_of_policy_is_measured() -> None:
    union = typing.get_args(typing.get_args(PolicyConfig)[0])
    kinds = [typing.get_args(model.model_fields["kind"].annotation)[0] for model in union]

    assert kinds == [config.kind for config in bench_policy.POLICIES]


def test_a_figure_is_of_a_walk_that_makes_the_policy_work() -> None:
    figure = bench_policy.measure(bench_policy.POLICIES[-1], 4200)

    assert ("cost_model", 4200) == (figure.kind, figure.rounds)
    assert 0 < figure.median <= figure.percentile_99
    assert figure.switches >= 4


@pytest.mark.parametrize(("median", "reached"), [(20.0, True), (20.1, False)])
def test_the_goal_is_a_median(median: float, reached: bool) -> None:
    figure = bench_policy.Figure(
        kind="off", median=median, percentile_99=99.0, rounds=1, switches=0
    )

    assert reached is figure.reached
