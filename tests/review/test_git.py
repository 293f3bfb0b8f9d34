"""Git is asked for commits and files; nothing is written."""

from pathlib import Path, PurePosixPath

import pytest

from specserve.errors import ConfigError
from specserve.review.git import Entry, find_repository
from tests.review.conftest import UserRepository

SERVING = PurePosixPath("serving")


def test_the_repository_is_found_from_any_folder_in_it(repository: UserRepository) -> None:
    assert repository.top == find_repository(repository.experiments).top


def test_a_commit_is_named_by_branch_tag_or_hash(repository: UserRepository) -> None:
    head = repository.commit()
    repository.git("tag", "--annotate", "v1", "--message", "one")
    found = find_repository(repository.top)

    assert [head] * 4 == [found.commit(name) for name in ("main", "v1", head[:12], "HEAD")]
    assert [None] * 3 == [found.commit(name) for name in ("nowhere", "-x", "HEAD:serving")]


def test_files_of_a_commit_are_read_whatever_they_are_called(repository: UserRepository) -> None:
    names = ["ü ß.yaml", "a\nb.yaml", "c\td.yaml", "[x].yaml"]
    for name in names:
        repository.write(name, name)
    commit = repository.commit()
    found = find_repository(repository.top)
    entries = {entry.path.name: entry for entry in found.entries_at(commit, SERVING)}

    assert {*names, "few.yaml", "more.yaml"} == entries.keys()
    contents = found.contents([entries[name].blob or "" for name in names])
    assert [name.encode() for name in names] == contents


def test_links_and_submodules_are_told_from_files(repository: UserRepository) -> None:
    (repository.experiments / "link.yaml").symlink_to("few.yaml")
    commit = repository.commit()
    repository.git("update-index", "--add", "--cacheinfo", f"160000,{commit},serving/sub")
    repository.git("commit", "--quiet", "--message", "submodule")
    entries = find_repository(repository.top).entries_at("HEAD", SERVING)

    assert {"few.yaml": "file", "link.yaml": "link", "more.yaml": "file", "sub": "other"} == {
        entry.path.name: entry.kind for entry in entries
    }


def test_the_working_tree_has_new_files_but_neither_ignored_nor_deleted_ones(
    repository: UserRepository,
) -> None:
    repository.write("/.gitignore", "ignored.yaml\n")
    repository.write("ignored.yaml", "a: 1")
    repository.write("new.yaml", "a: 1")
    (repository.experiments / "few.yaml").unlink()
    entries = find_repository(repository.top).working_entries(SERVING)

    assert [
        Entry(path=SERVING / f"experiment/{name}.yaml", kind="file", num_bytes=size, blob=None)
        for name, size in [
            ("more", (repository.experiments / "more.yaml").stat().st_size),
            ("new", 4),
        ]
    ] == entries


def test_changes_elsewhere_are_no_changes_of_the_configuration(
    repository: UserRepository,
) -> None:
    found = find_repository(repository.top)
    repository.write("/elsewhere.yaml", "a: 1")
    assert not found.has_changes([SERVING])

    repository.write("new.yaml", "a: 1")
    assert found.has_changes([SERVING])


def test_histories_without_a_common_commit_have_no_merge_base(repository: UserRepository) -> None:
    first = repository.commit()
    repository.git("checkout", "--quiet", "--orphan", "other")
    repository.write("new.yaml", "a: 1")
    second = repository.commit()
    found = find_repository(repository.top)

    assert first == found.merge_base(first, "main")
    assert found.merge_base(first, second) is None


def test_outside_of_a_repository_the_problem_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GIT_CEILING_DIRECTORIES", str(tmp_path.parent))

    with pytest.raises(ConfigError, match="not a git repository"):
        find_repository(tmp_path)


def test_without_git_the_problem_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(ConfigError, match="expected git"):
        find_repository(tmp_path)
