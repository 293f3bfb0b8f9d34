import shlex
from typing import Any

import pytest

from specserve.config.compose import compose_tree
from specserve.config.policy import PolicyConfig
from specserve.config.policy_rules import depth_problems, value_problems
from specserve.config.run import RunConfig
from specserve.errors import Problem


def policy(*overrides: str) -> PolicyConfig:
    return RunConfig.model_validate(compose_tree(overrides)).policy


def schedule(*lines: tuple[int, int]) -> str:
    entries = ",".join(f"{{up_to:{up_to},num_steps:{depth}}}" for up_to, depth in lines)
    return f"[{entries}]"


def found(*overrides: str) -> list[Problem]:
    return list(value_problems(policy(*overrides)))


TABLES = [
    ("depth_schedule", "policy.schedule"),
    ("acceptance", "policy.bounds.schedule"),
    ("cost_model", "policy.bounds.schedule"),
]
CALIBRATION = {"cost_model": ["policy.calibration=/x.json"]}


@pytest.mark.parametrize(("kind", "key"), TABLES)
@pytest.mark.parametrize(
    ("lines", "mended"),
    [
        (((8, 1), (4, 3)), ((4, 3), (8, 1))),
        (((4, 3), (8, 2), (8, 1)), ((4, 3), (8, 2))),
    ],
)
def test_a_table_increases_without_repeats(
    kind: str, key: str, lines: tuple[tuple[int, int], ...], mended: tuple[tuple[int, int], ...]
) -> None:
    chosen = [f"policy={kind}", *CALIBRATION.get(kind, [])]
    [problem] = found(*chosen, f"{key}={schedule(*lines)}")

    assert key == problem.key
    assert ["set", f"{key}={schedule(*mended)}"] == shlex.split(problem.fix)
    assert [] == found(*chosen, f"{key}={schedule(*mended)}")


@pytest.mark.parametrize(("kind", "key"), TABLES)
def test_a_table_without_any_depth_is_no_table(kind: str, key: str) -> None:
    chosen = [f"policy={kind}", *CALIBRATION.get(kind, [])]
    [problem] = found(*chosen, f"{key}={schedule((4, 0), (8, 0))}")

    assert (key, "choose policy=off") == (problem.key, problem.fix)


@pytest.mark.parametrize(("kind", "key"), TABLES)
def test_a_table_is_no_deeper_than_the_built_round(kind: str, key: str) -> None:
    chosen = [f"policy={kind}", *CALIBRATION.get(kind, [])]
    table: Any = policy(*chosen, f"{key}={schedule((4, 5), (8, 2))}")

    assert [] == list(depth_problems(table, 5))
    [problem] = depth_problems(table, 4)
    first, second = problem.fix.split(", or ")
    assert ["set", f"{key}={schedule((4, 4), (8, 2))}"] == shlex.split(first)
    assert "speculation.num_steps=5" == second


@pytest.mark.parametrize(("hysteresis", "accepted"), [(0, True), (4, True), (5, False)])
def test_the_first_lines_depth_can_return(hysteresis: int, accepted: bool) -> None:
    problems = found("policy=depth_schedule", f"policy.hysteresis={hysteresis}")

    assert accepted == (not problems)
    assert [] == problems or "set policy.hysteresis=4" == problems[0].fix


@pytest.mark.parametrize(("margin", "accepted"), [(0.5, True), (0.51, False)])
def test_a_margin_can_be_cleared(margin: float, accepted: bool) -> None:
    chosen = ["policy=acceptance", "policy.min_acceptance=0.5", f"policy.margin={margin}"]

    problems = found(*chosen)

    assert accepted == (not problems)
    assert [] == problems or "set policy.margin=0.25" == problems[0].fix


@pytest.mark.parametrize("kind", ["off", "always", "batch_threshold"])
def test_other_kinds_have_no_depths(kind: str) -> None:
    assert [] == list(depth_problems(policy(f"policy={kind}"), 1))
    assert [] == found(f"policy={kind}")
