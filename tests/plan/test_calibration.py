"""The calibration of a cost_model: read when the plan is made, and checked against the run."""

from collections.abc import Callable
from pathlib import Path

import pytest

from specserve.calibration.read import save_calibration
from specserve.config.load import load_run
from specserve.errors import Problem
from specserve.facts import Facts
from specserve.plan import Plan, machine_problems
from specserve.testing.calibrations import make_calibration

MakePlan = Callable[..., Plan]
Problems = Callable[..., list[Problem]]


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "table.json"
    save_calibration(make_calibration(), path)
    return path


def chosen(path: Path | str) -> list[str]:
    return ["policy=cost_model", f"policy.calibration={path}"]


def test_it_comes_inside_the_plan_and_through_json(
    h200: Facts, plan_of: MakePlan, file: Path
) -> None:
    plan = plan_of(h200, *chosen(file))

    assert make_calibration() == plan.calibration
    assert plan == Plan.model_validate_json(plan.model_dump_json())


def test_other_policies_have_none(h200: Facts, plan_of: MakePlan) -> None:
    assert plan_of(h200).calibration is None


def test_its_path_is_seen_from_where_the_command_was_given(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(file.parent)

    run = load_run(["+experiment=topk1_v2", *chosen(file.name)])

    assert str(file) == run.config.policy.model_dump()["calibration"]


def test_a_file_that_is_not_there_is_told_beside_all_else(
    cpu: Facts, problems_of: Problems, tmp_path: Path
) -> None:
    found = problems_of(cpu, *chosen(tmp_path / "none.json"), "engine.device=cuda")

    assert {"policy.calibration", "engine.device"} == {problem.key for problem in found}


def test_it_is_checked_even_where_a_checkpoint_is_missing(h200: Facts, tmp_path: Path) -> None:
    run = load_run(["+experiment=topk1_v2", *chosen(tmp_path / "none.json")]).config
    without = h200.model_copy(update={"target": None, "draft": None})

    assert ["policy.calibration"] == [p.key for p in machine_problems(run, without)]


def test_round_times_of_a_tree_are_none_of_a_chain(
    h200: Facts,
    plan_of: MakePlan,
    problems_of: Problems,
    advice: Callable[[Problem], list[list[str]]],
    tmp_path: Path,
) -> None:
    path = tmp_path / "tree.json"
    save_calibration(make_calibration(topk=2), path)

    [problem] = problems_of(h200, *chosen(path))

    assert "policy.calibration" == problem.key
    assert "topk=1 (speculation.topk), found those of topk=2" in problem.expected
    assert plan_of(h200, *chosen(path), *advice(problem)[0]).calibration is not None


def test_a_depth_that_can_be_built_must_have_been_measured(
    h200: Facts,
    plan_of: MakePlan,
    problems_of: Problems,
    advice: Callable[[Problem], list[list[str]]],
    tmp_path: Path,
) -> None:
    path = tmp_path / "deep.json"
    times = {0: [0.01], 5: [0.02]}
    save_calibration(
        make_calibration(batch_sizes=[1], round_seconds=times, acceptance=[0.5] * 5), path
    )

    [problem] = problems_of(h200, *chosen(path))

    assert "a depth from 1 to 3 (speculation.num_steps), found those of [0, 5]" in problem.expected
    assert plan_of(h200, *chosen(path), *advice(problem)[0]).calibration is not None


def test_figures_of_another_machine_or_engine_are_warned_of(
    h200: Facts, cpu: Facts, plan_of: MakePlan, file: Path
) -> None:
    on_gpu = [w for w in plan_of(h200, *chosen(file)).warnings if "policy.calibration" in w.text]
    other_engine = plan_of(h200, *chosen(file), "engine=sglang").warnings

    assert 1 == len(on_gpu)
    assert "measured on made up" in on_gpu[0].text
    assert any(
        "measured with engine=torch, and this run has engine=sglang" in w.text for w in other_engine
    )
    assert not any("policy.calibration" in w.text for w in plan_of(cpu, *chosen(file)).warnings)
