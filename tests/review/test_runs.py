from pathlib import Path

import pytest

from specserve.check import check_run
from specserve.check.machine import PlanningMachine
from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.errors import ConfigError
from specserve.facts import gather_facts
from specserve.review.runs import last_measured, read_run_config, side_of_run
from specserve.worker.run_directory import create_run_directory

TOPK1 = ["+experiment=topk1_v2"]


def _run(folder: Path, *overrides: str) -> RunConfig:
    """A run folder as a run makes it."""
    report = check_run(overrides, [], None)
    assert report.plan is not None
    create_run_directory(
        folder,
        run=report.config,
        overrides=overrides,
        facts=gather_facts(report.config),
        plan=report.plan,
    )
    return report.config


def test_the_newest_measured_run_of_the_very_configuration_is_found(tmp_path: Path) -> None:
    for name, port in (("a", 1), ("b", 1), ("c", 2), ("d", 1)):
        _run(tmp_path / name, f"server.port={port}")
        if name != "d":
            (tmp_path / name / "results.jsonl").write_text(f'{{"name": "{name}"}}\n')
    config = load_run(["server.port=1"]).config

    assert {"name": "b"} == last_measured(tmp_path, config).figures
    assert {} == last_measured(tmp_path, load_run(["server.port=3"]).config).figures
    assert {} == last_measured(tmp_path / "nowhere", config).figures
    assert {} == last_measured(tmp_path, None).figures


def test_a_secret_that_a_folder_does_not_keep_does_not_tell_runs_apart(tmp_path: Path) -> None:
    config = _run(tmp_path / "a", "server.api_key=secret")
    (tmp_path / "a/results.jsonl").write_text('{"x": 1}\n')

    assert {"x": "1"} == last_measured(tmp_path, config).figures


def test_a_run_folder_is_looked_at_by_the_plan_that_it_ran_with(tmp_path: Path) -> None:
    _run(tmp_path / "a", *TOPK1, "engine.num_threads=1")
    plan = tmp_path / "a/plan.json"
    plan.write_text(plan.read_text().replace('"num_threads": 1', '"num_threads": 77'))
    side = side_of_run(tmp_path / "a", PlanningMachine(None))

    assert side.plan is not None
    assert 77 == side.plan.num_threads


def test_a_plan_of_another_form_is_made_anew(tmp_path: Path) -> None:
    _run(tmp_path / "a", *TOPK1, "engine.num_threads=1")
    (tmp_path / "a/plan.json").write_text('{"version": 0}')
    side = side_of_run(tmp_path / "a", PlanningMachine(None))

    assert side.plan is not None
    assert 1 == side.plan.num_threads


@pytest.mark.parametrize("contents", [None, "a: 1", "[1]", "a: ["])
def test_what_holds_no_run_is_refused(contents: str | None, tmp_path: Path) -> None:
    if contents is not None:
        (tmp_path / "config.yaml").write_text(contents)

    with pytest.raises(ConfigError, match="a whole configuration"):
        read_run_config(tmp_path / "config.yaml")
