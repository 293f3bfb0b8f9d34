import json
from pathlib import Path

import pytest

from specserve.config.compose import compose_run, compose_tree, config_directory
from specserve.errors import ConfigError, Problem

HEADER = "# @package _global_\n"


@pytest.fixture
def user_folder(tmp_path: Path) -> Path:
    (tmp_path / "experiment").mkdir()
    return tmp_path


def _problems(overrides: list[str], *folders: Path) -> list[Problem]:
    with pytest.raises(ConfigError) as refused:
        compose_tree(overrides, folders)
    return list(refused.value.problems)


def _write(folder: Path, text: str | bytes) -> Path:
    file = folder / "experiment/mine.yaml"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    return file


def test_only_plain_data_comes_out() -> None:
    """JSON without a custom encoder, and a round trip that changes nothing: no tuples, no enums."""
    tree = compose_tree(["+experiment=topk4_v1", "cuda_graph.batch_sizes=[1,2]"])

    assert tree == json.loads(json.dumps(tree))


def test_references_are_resolved() -> None:
    tree = compose_tree(["+experiment=topk1_v2", "model.draft_path=/drafts/a"])

    assert "/drafts/a" == tree["speculation"]["draft"]["path"]


def test_an_experiment_wins_over_the_groups_and_the_command_line_over_it() -> None:
    tree = compose_tree(["+experiment=topk4_v1", "speculation.topk=2"])

    assert ("sync", 2) == (tree["scheduler"]["kind"], tree["speculation"]["topk"])


def test_the_same_arguments_compose_the_same_twice() -> None:
    """Hydra's global state does not leak from one composition into the next."""
    first = compose_tree(["+experiment=topk1_v2"])
    compose_tree(["policy=off", "server.port=1"])

    assert first == compose_tree(["+experiment=topk1_v2"])


def test_a_users_folder_adds_experiments(user_folder: Path) -> None:
    _write(user_folder, HEADER + "server:\n  port: 4321\n")

    assert 4321 == compose_tree(["+experiment=mine"], [user_folder])["server"]["port"]


def test_several_folders_are_searched(user_folder: Path, tmp_path: Path) -> None:
    other = tmp_path / "other folder, odd=name"
    (other / "experiment").mkdir(parents=True)
    (other / "experiment/theirs.yaml").write_text(HEADER + "server:\n  port: 1\n")
    _write(user_folder, HEADER + "server:\n  host: localhost\n")

    tree = compose_tree(["+experiment=[mine,theirs]"], [user_folder, other])

    assert ("localhost", 1) == (tree["server"]["host"], tree["server"]["port"])


def test_a_folder_that_is_not_there_is_named(tmp_path: Path) -> None:
    [problem] = _problems([], tmp_path / "nowhere")

    assert ("--config-dir", str(tmp_path / "nowhere")) == (problem.key, problem.value)


def test_two_ways_to_name_folders_are_one_too_many(user_folder: Path) -> None:
    """Hydra takes the first of two search paths, silently."""
    [problem] = _problems(["hydra.searchpath=[file:///x]"], user_folder)

    assert "hydra.searchpath" == problem.key


@pytest.mark.parametrize(
    ("content", "key", "words"),
    [
        ("defaults:\n  - override /speculaton: x\n", "experiment/mine.yaml", "override /specul"),
        ("defaults:\n  - override /speculation: eagle3\n", "speculation", "=eagle3_topk1"),
        ("defaults:\n  - override /quantization: off\n", "defaults", "quote"),
        ("defaults:\n  - /nogroup: x\n", "nogroup", "experiment/mine.yaml"),
        ("- a list\n", "experiment/mine.yaml", "ConfigTypeError"),
        ("model:\n  name: ${\n", "model.name", "viable"),
    ],
)
def test_a_file_that_hydra_refuses_is_named(
    user_folder: Path, content: str, key: str, words: str
) -> None:
    _write(user_folder, HEADER + content)

    [problem] = _problems(["+experiment=mine"], user_folder)

    assert key == problem.key
    assert words in f"{problem.expected} {problem.fix}"


@pytest.mark.parametrize("content", ["model: [1\n", "model:\n  name: a\n  name: b\n", "a: 'b\n"])
def test_bad_yaml_is_named_with_its_line(user_folder: Path, content: str) -> None:
    file = _write(user_folder, HEADER + content)

    [problem] = _problems(["+experiment=mine"], user_folder)

    assert problem.key.startswith(f"{file}:")


def test_a_file_that_is_not_utf8_is_named(user_folder: Path) -> None:
    file = _write(user_folder, b"\xff\xfe")

    [problem] = _problems(["+experiment=mine"], user_folder)

    assert str(file) == problem.key


@pytest.mark.parametrize(
    ("reference", "target"),
    [
        ("${nothere}", "nothere"),
        ("${model.nothere}", "model.nothere"),
        ("${oc.env:SPECSERVE_UNSET}", "SPECSERVE_UNSET"),
        ("${hydra:job.name}", "hydra:job.name"),
        ("${nosuch:resolver}", "nosuch"),
    ],
)
def test_a_broken_reference_names_both_keys(reference: str, target: str) -> None:
    """Also in a section that the run does not use, and before anything starts."""
    [problem] = _problems([f"speculation.unused.deep={reference}"])

    assert "speculation.unused.deep" == problem.key
    assert target in problem.expected


def test_a_broken_reference_inside_a_list_is_found() -> None:
    [problem] = _problems(["cuda_graph.batch_sizes=[1,'${nothere}']"])

    assert "cuda_graph.batch_sizes.1" == problem.key


def test_a_missing_value_is_required_by_name() -> None:
    problems = _problems(["+experiment=topk1_v2", "speculation.draft.path=???", "model.name=???"])

    assert {"speculation.draft.path", "model.name"} == {problem.key for problem in problems}
    assert all("required" in problem.expected for problem in problems)


def test_a_reference_to_a_missing_value_is_told_with_it() -> None:
    problems = _problems(["+experiment=topk1_v2", "model.draft_path=???"])

    assert {"model.draft_path", "speculation.draft.path"} == {p.key for p in problems}


@pytest.mark.parametrize("text", ["foo", "foo bar=3", "=3", "a b"])
def test_what_is_no_override_is_refused(text: str) -> None:
    [problem] = _problems([text])

    assert "key=value" in problem.expected


def test_a_misspelt_key_of_hydra_is_refused() -> None:
    [problem] = _problems(["hydra.run.dirr=x"])

    assert "hydra.run.dirr" == problem.key


def test_deleting_what_is_not_there_is_refused() -> None:
    [problem] = _problems(["~nothere"])

    assert "nothere" == problem.key


def test_paths_are_absolute_as_seen_by_the_caller(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    tree = compose_tree(["+experiment=topk1_v2", "model.path=a/../b/c/d", "model.draft_path=../e"])

    assert (str(tmp_path / "b/c/d"), str(tmp_path.parent / "e")) == (
        tree["model"]["path"],
        tree["speculation"]["draft"]["path"],
    )
    assert str(tmp_path.parent / "e") == tree["model"]["draft_path"]


def test_a_flawed_override_is_composed_as_it_was_meant() -> None:
    composition = compose_run(["quantization=off", "model.name=1e10"])

    assert ["quantization", "model.name"] == [problem.key for problem in composition.problems]
    assert ("none", "1e10") == (
        composition.tree["quantization"]["kind"],
        composition.tree["model"]["name"],
    )


def test_the_shipped_configuration_is_found() -> None:
    assert (config_directory() / "config.yaml").is_file()
