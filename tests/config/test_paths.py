from pathlib import Path

import pytest

import specserve
from specserve.config.paths import absolute_path, is_hub_id, name_of_path, resolve_path


@pytest.mark.parametrize("path", ["bundled:demo/target", "meta-llama/Llama-3.1-8B", "/a/b"])
def test_what_is_not_relative_stays(path: str, tmp_path: Path) -> None:
    assert path == absolute_path(path, tmp_path)


@pytest.mark.parametrize(
    ("path", "expected"),
    [("ckpt", "ckpt"), ("./org/name", "org/name"), ("a/b/c", "a/b/c"), ("a/./b/../c/d", "a/c/d")],
)
def test_a_relative_path_is_seen_from_the_caller(path: str, expected: str, tmp_path: Path) -> None:
    assert str(tmp_path / expected) == absolute_path(path, tmp_path)


def test_parents_stop_at_the_root() -> None:
    assert "/x" == absolute_path("../../../x", Path("/a"))


def test_the_home_directory_is_expanded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))

    assert str(tmp_path / "ckpt") == absolute_path("~/ckpt", Path("/elsewhere"))


def test_a_local_folder_comes_before_a_hub_id(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "org/name").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)

    assert str(tmp_path / "org/name") == absolute_path("org/name", tmp_path)
    assert not is_hub_id("org/name")
    assert is_hub_id("org/other")


@pytest.mark.parametrize("path", ["a", "/a/b", "./a/b", "a/b/c", "bundled:a/b", "../b", "a/"])
def test_a_path_is_no_hub_id(path: str) -> None:
    assert not is_hub_id(path)


def test_bundled_checkpoints_lie_in_the_package() -> None:
    assert Path(specserve.__file__).parent / "demo/target" == resolve_path("bundled:demo/target")


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("bundled:demo/target", "specserve-demo"),
        ("meta-llama/Llama-3.1-8B-Instruct", "Llama-3.1-8B-Instruct"),
        ("/models/my tuned model", "my tuned model"),
        ("/models/v1.2/", "v1.2"),
        ("/", "/"),
    ],
)
def test_a_model_is_named_after_the_last_part_of_its_path(path: str, name: str) -> None:
    assert name == name_of_path(path)


def test_other_paths_are_taken_as_they_stand() -> None:
    assert Path("/a/b") == resolve_path("/a/b")
