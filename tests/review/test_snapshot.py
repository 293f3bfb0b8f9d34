from pathlib import Path, PurePosixPath

import pytest

from specserve.errors import Problem
from specserve.review.git import find_repository
from specserve.review.snapshot import AtCommit, InWorkingTree, Snapshot, Source, take_snapshot
from specserve.rule_ids import RuleId
from tests.review.conftest import UserRepository

SERVING = PurePosixPath("serving")


def _source(repository: UserRepository, *, committed: bool) -> Source:
    found = find_repository(repository.top)
    return AtCommit(found, repository.commit()) if committed else InWorkingTree(found)


def _snapshot(source: Source, tmp_path: Path) -> Snapshot:
    return take_snapshot(source, [SERVING], tmp_path / "copy")


@pytest.mark.parametrize("committed", [True, False])
def test_yaml_files_and_only_they_are_copied(
    committed: bool, repository: UserRepository, tmp_path: Path
) -> None:
    repository.write("notes.txt", "a")
    repository.write("/serving/policy/mine.yaml", "kind: off")
    snapshot = _snapshot(_source(repository, committed=committed), tmp_path)
    copies = sorted(p.relative_to(snapshot.root) for p in snapshot.root.rglob("*") if p.is_file())

    assert ["experiment/few.yaml", "experiment/more.yaml", "policy/mine.yaml"] == [
        str(path.relative_to("serving")) for path in copies
    ]
    assert {} == snapshot.refused


@pytest.mark.parametrize("committed", [True, False])
@pytest.mark.parametrize(
    ("link", "target", "followed"),
    [
        ("a.yaml", "few.yaml", True),
        ("a.yaml", "../policy/mine.yaml", True),
        ("a.yaml", "../../serving/./experiment/few.yaml", True),
        ("a.yaml", "../../../outside.yaml", False),
        ("a.yaml", "/etc/passwd", False),
        ("a.yaml", "missing.yaml", False),
        ("a.yaml", "a.yaml", False),
        ("a.yaml", "../policy", False),
    ],
)
def test_a_link_is_followed_to_files_of_the_configuration_only(
    link: str,
    target: str,
    followed: bool,
    committed: bool,
    repository: UserRepository,
    tmp_path: Path,
) -> None:
    repository.write("/serving/policy/mine.yaml", "kind: off")
    (tmp_path / "outside.yaml").write_text("secret: 1")
    (repository.experiments / link).symlink_to(target)
    snapshot = _snapshot(_source(repository, committed=committed), tmp_path)
    copy = snapshot.root / "serving/experiment" / link

    assert not copy.is_symlink()
    assert "secret" not in copy.read_text()
    assert ([] if followed else [f"serving/experiment/{link}"]) == list(snapshot.refused)


def test_problems_name_files_of_the_repository(repository: UserRepository, tmp_path: Path) -> None:
    repository.write("few.yaml", b"\xff")
    snapshot = _snapshot(_source(repository, committed=False), tmp_path)
    found = Problem(
        rule=RuleId.BAD_YAML,
        key=f"{snapshot.root}/serving/experiment/few.yaml:1",
        value="x",
        expected=f"no {snapshot.root}/serving",
        fix="y",
    )

    told = snapshot.relabelled(found)
    assert ("serving/experiment/few.yaml:1", "text in UTF-8") == (told.key, told.expected)
    other = Problem(rule=RuleId.NOT_UTF8, key="k", value=1, expected=found.expected, fix="y")
    assert "no serving" == snapshot.relabelled(other).expected
