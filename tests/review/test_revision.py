"""A side reads everything that git holds from git: a calibration, too."""

import shutil
from pathlib import Path

from specserve.check.machine import PlanningMachine
from specserve.review.depths import LoadDepths
from specserve.review.folders import find_folders
from specserve.review.git import find_repository
from specserve.review.revision import at_commit, in_working_tree
from tests.review.conftest import UserRepository, experiment

CALIBRATION = Path(__file__).parent.parent / "data/calibration.json"


def _depths(repository: UserRepository, tmp_path: Path, commit: str | None) -> LoadDepths | None:
    folders = find_folders(find_repository(repository.top), [Path("serving")])
    copy = tmp_path / (commit or "working")
    if commit is None:
        revision = in_working_tree("now", folders, copy)
    else:
        revision = at_commit(commit, "then", folders, copy)
    return revision.side("costs", [], PlanningMachine(None)).depths


def test_a_calibration_is_that_of_the_revision(repository: UserRepository, tmp_path: Path) -> None:
    text = experiment(4).partition("policy:\n")[0].replace("batch_threshold", "cost_model")
    repository.write("costs.yaml", text + "policy: {calibration: serving/costs.json}\n")
    without = repository.commit()
    place = repository.top / "serving/costs.json"
    shutil.copy(CALIBRATION, place)
    with_it = repository.commit()
    place.write_text("{}")

    assert _depths(repository, tmp_path, without) is None
    assert _depths(repository, tmp_path, with_it) is not None
    assert _depths(repository, tmp_path, None) is None


def test_folders_outside_of_the_repository_are_the_same_on_both_sides(
    repository: UserRepository, tmp_path: Path
) -> None:
    (tmp_path / "outside/policy").mkdir(parents=True)
    (tmp_path / "outside/policy/mine.yaml").write_text("kind: 'off'\n")
    found = find_folders(find_repository(repository.top), [Path("serving"), tmp_path / "outside"])
    revision = at_commit("main", "main", found, tmp_path / "copy")

    assert (tmp_path / "outside",) == found.outside
    assert revision.side(None, ["policy=mine"], PlanningMachine(None)).config is not None
