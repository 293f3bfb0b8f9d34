import shutil
import subprocess
import sys
from pathlib import Path

import psutil
import pytest

from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.errors import ConfigError
from specserve.facts import (
    Gpu,
    gather_facts,
    installed_versions,
    load_facts,
    measure_machine,
    memory_limit,
    save_facts,
    visible_gpus,
)
from specserve.testing.checkpoints import write_draft, write_target
from specserve.worker.run_directory import facts_json

RECORDED = Path(__file__).parent / "data" / "facts"


@pytest.fixture(scope="module")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("pair")
    target = write_target(folder / "target", architecture="llama", num_layers=2)
    return target, write_draft(folder / "draft", target_folder=target)


def run(target: object, draft: object, *overrides: str) -> RunConfig:
    pair = [f"model.path={target}", f"model.draft_path={draft}"]
    return load_run(["+experiment=topk1_v2", *pair, *overrides]).config


def test_both_checkpoints_and_the_machine_are_seen(folders: tuple[Path, Path]) -> None:
    facts = gather_facts(run(*folders))

    assert facts.target is not None
    assert facts.draft is not None
    assert (str(folders[0]), str(folders[1])) == (facts.target.path, facts.draft.path)
    assert measure_machine() == facts.machine
    assert installed_versions() == facts.versions


def test_without_speculation_no_draft_is_looked_for(folders: tuple[Path, Path]) -> None:
    facts = gather_facts(run(folders[0], "/nowhere/at/all", "speculation=off", "policy=off"))

    assert facts.draft is None


def test_problems_of_both_checkpoints_are_told_at_once() -> None:
    with pytest.raises(ConfigError) as caught:
        gather_facts(run("/nowhere/target", "/nowhere/draft"))

    assert ["model.path", "speculation.draft.path"] == [p.key for p in caught.value.problems]


def test_a_bundled_name_that_does_not_ship_is_refused_as_that() -> None:
    with pytest.raises(ConfigError) as caught:
        gather_facts(run("bundled:nothing/target", "bundled:nothing/draft"))

    assert "bundled:nothing/target" == caught.value.problems[0].value
    assert "a checkpoint that ships with specserve" in caught.value.problems[0].expected


def test_a_hub_id_that_was_not_downloaded_is_no_error(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))

    facts = gather_facts(run("someone/target", "someone/draft"))

    assert (None, None) == (facts.target, facts.draft)


@pytest.mark.parametrize("variable", ["HF_HUB_CACHE", "HF_HOME"])
def test_a_hub_id_that_was_downloaded_is_found_in_the_hubs_cache(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, folders: tuple[Path, Path], variable: str
) -> None:
    monkeypatch.delenv("HF_HUB_CACHE", raising=False)
    monkeypatch.setenv(variable, str(tmp_path))
    cache = tmp_path if variable == "HF_HUB_CACHE" else tmp_path / "hub"
    repository = cache / "models--someone--target"
    (repository / "refs").mkdir(parents=True)
    (repository / "refs" / "main").write_text("abc123\n")
    shutil.copytree(folders[0], repository / "snapshots" / "abc123")

    facts = gather_facts(run("someone/target", "someone/draft"))

    assert facts.target is not None
    assert str(repository / "snapshots" / "abc123") == facts.target.path
    assert facts.draft is None


def test_a_problem_of_a_download_names_the_hub_id_and_the_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    repository = tmp_path / "models--someone--target"
    (repository / "snapshots/abc123").mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs/main").write_text("abc123\n")
    with pytest.raises(ConfigError) as caught:
        gather_facts(run("someone/target", "someone/draft"))
    [problem] = caught.value.problems

    assert "someone/target" == problem.value
    assert problem.expected.endswith(f" in {repository}/snapshots/abc123")


def test_facts_reload_to_themselves(tmp_path: Path, folders: tuple[Path, Path]) -> None:
    facts = gather_facts(run(*folders))

    save_facts(facts, tmp_path / "facts.json")

    assert facts == load_facts(tmp_path / "facts.json")


def test_facts_of_a_run_directory_are_read_alike(
    tmp_path: Path, folders: tuple[Path, Path]
) -> None:
    facts = gather_facts(run(*folders))
    path = tmp_path / "facts.json"
    path.write_text(facts_json(facts, "torch"), encoding="utf-8")

    assert facts == load_facts(path)


def test_a_run_directory_in_place_of_its_file_is_told_the_file(tmp_path: Path) -> None:
    (tmp_path / "facts.json").write_text("{}")

    with pytest.raises(ConfigError) as caught:
        load_facts(tmp_path)

    assert f"give --facts {tmp_path}/facts.json" == caught.value.problems[0].fix


def test_bytes_that_are_no_text_are_no_facts(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    path.write_bytes(b"\xff\xfe\x00")

    with pytest.raises(ConfigError, match="is no JSON"):
        load_facts(path)


@pytest.mark.parametrize("name", sorted(path.name for path in RECORDED.glob("*.json")))
def test_recorded_facts_load_and_say_that_they_are_not_measured(name: str) -> None:
    facts = load_facts(RECORDED / name)

    assert "Not measured" in facts.source
    assert facts.target is not None
    assert facts.target.tensors is None


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (None, "found none (No such file or directory)"),
        ("{", "but the file is no JSON (Expecting property name"),
        ("[]", "but the file: Input should be an object"),
        ('{"facts": 3}', "but the file: Input should be an object"),
        ('{"facts": {"source": 3}}', "but source: Input should be a valid string"),
        ("{}", "but source: Field required"),
        ('{"source": 3}', "but source: Input should be a valid string"),
    ],
)
def test_a_file_without_facts_is_refused(
    tmp_path: Path, content: str | None, expected: str
) -> None:
    path = tmp_path / "facts.json"
    if content is not None:
        path.write_text(content)

    with pytest.raises(ConfigError) as caught:
        load_facts(path)

    [problem] = caught.value.problems
    assert ("--facts", str(path)) == (problem.key, problem.value)
    assert expected in problem.expected


GPUS = [
    (f"GPU-{i}{i}{i}", Gpu(name=f"G{i}", memory_bytes=1, compute_capability="9.0"))
    for i in range(3)
]


@pytest.mark.parametrize(
    ("setting", "names"),
    [
        (None, ["G0", "G1", "G2"]),
        ("", []),
        ("-1", []),
        ("2,0", ["G2", "G0"]),
        ("0, 1", ["G0", "G1"]),
        ("0,7,1", ["G0"]),
        ("GPU-1", ["G1"]),
        ("GPU-", []),
        ("GPU-222,GPU-0", ["G2", "G0"]),
        ("junk", []),
    ],
)
def test_cuda_visible_devices_chooses_as_cuda_does(setting: str | None, names: list[str]) -> None:
    assert names == [gpu.name for gpu in visible_gpus(GPUS, setting)]


@pytest.mark.parametrize(
    ("content", "limit"), [("max\n", 100), ("60\n", 60), ("500\n", 100), (None, 100)]
)
def test_a_container_may_use_its_own_share_of_the_memory(
    tmp_path: Path, content: str | None, limit: int
) -> None:
    path = tmp_path / "memory.max"
    if content is not None:
        path.write_text(content)

    assert limit == memory_limit(100, path)


def test_the_machine_is_measured() -> None:
    machine = measure_machine()

    assert 1 <= machine.cpu_count <= (psutil.cpu_count() or 1)
    assert 0 < machine.memory_bytes <= psutil.virtual_memory().total


def test_only_installed_distributions_have_a_version() -> None:
    versions = installed_versions()

    assert {"torch", "pydantic", "transformers"} <= set(versions)
    assert all(versions.values())


def test_facts_and_plan_are_had_without_torch(folders: tuple[Path, Path]) -> None:
    program = f"""
import sys
from specserve.config.load import load_run
from specserve.facts import gather_facts
from specserve.plan import make_plan
overrides = ["+experiment=topk1_v2", "model.path={folders[0]}", "model.draft_path={folders[1]}"]
overrides += ["speculation.draft.aux_layer_ids=[0,1,2]"]
overrides += ["speculation.draft.aux_layer_convention=input"]
config = load_run(overrides).config
make_plan(config, gather_facts(config))
print(sorted({{"torch", "transformers", "numpy", "sglang"}} & set(sys.modules)))
"""

    found = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )

    assert "[]" == found.stdout.strip()
