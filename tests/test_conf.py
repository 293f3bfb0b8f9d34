"""conf/ is code: every file is composed, validated and planned."""

import itertools
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest
import yaml

from specserve.config.compose import compose_tree, config_directory
from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.facts import load_facts
from specserve.plan import make_plan

CONF = config_directory()
ROOT = Path(__file__).parent.parent
FACTS = Path(__file__).parent / "data/facts"
CALIBRATION = Path(__file__).parent / "data/calibration.json"
POLICIES = ["off", "always", "batch_threshold", "depth_schedule", "acceptance"]

EXPERIMENTS = sorted(file.stem for file in (CONF / "experiment").glob("*.yaml"))
OPTIONS = sorted(
    (file.parent.name, file.stem)
    for file in CONF.glob("*/*.yaml")
    if file.parent.name != "experiment" and not file.stem.startswith("_")
)
STATIC = ["engine=sglang", "policy=always"]
# What an option needs beside it: it is valid in company only.
COMPANY = {
    ("policy", "always"): ["speculation=eagle3_topk1"],
    ("policy", "batch_threshold"): ["speculation=eagle3_topk1"],
    ("policy", "depth_schedule"): ["speculation=eagle3_topk1"],
    ("policy", "acceptance"): ["speculation=eagle3_topk1"],
    ("policy", "cost_model"): ["speculation=eagle3_topk1", f"policy.calibration={CALIBRATION}"],
    ("attention", "fa3"): ["engine=sglang"],
    ("attention", "flashinfer"): ["engine=sglang"],
    ("attention", "triton"): ["engine=sglang"],
    ("parallel", "tp2"): ["engine=sglang"],
    ("parallel", "tp8"): ["engine=sglang"],
    ("quantization", "compressed_tensors_int4"): ["engine=sglang"],
    ("quantization", "awq"): ["engine=sglang"],
    ("quantization", "fp8"): ["engine=sglang"],
    ("quantization", "gptq"): ["engine=sglang"],
    ("quantization", "nvfp4"): ["engine=sglang"],
    ("speculation", "dflash"): [*STATIC, "speculation.draft.path=/draft"],
    ("speculation", "eagle_topk1"): ["engine=sglang", "speculation.draft.path=/draft"],
    ("speculation", "mtp"): ["engine=sglang"],
    ("speculation", "ngram"): STATIC,
    ("speculation", "standalone"): [*STATIC, "speculation.draft.path=/draft"],
}


def _files() -> list[Path]:
    return sorted(CONF.rglob("*.yaml"))


def _shipped() -> list[Path]:
    """With the schemas that editors read."""
    return [*_files(), *CONF.rglob("*.json")]


def test_the_defaults_are_a_run() -> None:
    assert isinstance(load_run([]).config, RunConfig)


@pytest.mark.parametrize(("group", "option"), OPTIONS)
def test_every_option_is_valid(group: str, option: str) -> None:
    load_run([f"{group}={option}", *COMPANY.get((group, option), [])])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_is_valid(name: str) -> None:
    load_run([f"+experiment={name}"])


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_every_experiment_plans(name: str) -> None:
    """For the model that it names; those of the demo model for the recorded H200 and its Llama."""
    kimi = name.startswith("kimi")
    overrides = [f"+experiment={name}", *([] if kimi else ["model=llama31_8b"])]
    facts = load_facts(FACTS / ("kimi_k25.json" if kimi else "h200.json"))
    run = load_run(overrides).config

    assert run.policy == make_plan(run, facts).policy


@pytest.mark.parametrize("policy", sorted(file.stem for file in (CONF / "policy").glob("*.yaml")))
def test_every_policy_plans(policy: str) -> None:
    """A cost_model has no table that would fit every machine: it is given one."""
    table = [f"policy.calibration={CALIBRATION}"] if policy == "cost_model" else []
    run = load_run(["+experiment=topk1_v2", "model=llama31_8b", f"policy={policy}", *table]).config

    plan = make_plan(run, load_facts(FACTS / "h200.json"))

    assert run.policy == plan.policy
    assert (plan.calibration is None) == (policy != "cost_model")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_is_headed_by_its_package_and_its_command(name: str) -> None:
    package, _, command, *_ = (CONF / f"experiment/{name}.yaml").read_text().splitlines()

    assert "# @package _global_" == package
    assert command.startswith("# specserve ")
    assert command.endswith(f"+experiment={name}")


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_an_experiment_overrides_groups_that_exist(name: str) -> None:
    content = yaml.safe_load((CONF / f"experiment/{name}.yaml").read_text())
    groups = [key.removeprefix("override /") for entry in content["defaults"] for key in entry]

    assert set(groups) <= set(RunConfig.model_fields)


@pytest.mark.parametrize("file", _files(), ids=lambda file: str(file.relative_to(CONF)))
def test_every_file_says_what_it_is_for(file: Path) -> None:
    assert re.search(r"\A(?:# (?:yaml-language-server:|@package).*\n)*# \w", file.read_text())


def test_every_section_has_a_group_and_every_group_a_section() -> None:
    groups = {folder.name for folder in CONF.iterdir() if folder.is_dir()}

    assert set(RunConfig.model_fields) == groups - {"experiment", "hydra"}


def test_the_promised_defaults() -> None:
    tree = compose_tree()

    assert ("off", "off", "torch", "127.0.0.1", 8000, "bundled:demo/target") == (
        tree["speculation"]["kind"],
        tree["policy"]["kind"],
        tree["engine"]["kind"],
        tree["server"]["host"],
        tree["server"]["port"],
        tree["model"]["path"],
    )


def test_schedulers_differ_in_their_kind_only() -> None:
    overlap, sync = (
        compose_tree([f"scheduler={kind}"])["scheduler"] for kind in ("overlap", "sync")
    )

    assert [("kind", "overlap", "sync")] == [
        (key, overlap[key], sync[key]) for key in overlap if overlap[key] != sync[key]
    ]


def test_drafting_and_policies_combine_freely() -> None:
    drafting = ["eagle3_topk1", "eagle3_topk4"]
    for speculation, policy in itertools.product(drafting, POLICIES):
        load_run([f"speculation={speculation}", f"policy={policy}"])


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built by the backend that pyproject.toml names, without a network."""
    folder = tmp_path_factory.mktemp("wheel")
    code = f"import hatchling.build; print(hatchling.build.build_wheel({str(folder)!r}))"
    built = subprocess.run(
        [sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=100
    )
    assert 0 == built.returncode, built.stderr
    return folder / built.stdout.split()[-1]


def test_the_wheel_carries_the_whole_configuration(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())

    assert {f"specserve/conf/{file.relative_to(CONF).as_posix()}" for file in _shipped()} <= names


def test_an_unpacked_wheel_works_from_the_root_folder(wheel: Path, tmp_path: Path) -> None:
    """Its own conf/ is the one that is read, not the checkout's."""
    zipfile.ZipFile(wheel).extractall(tmp_path)
    code = (
        "from specserve.config.compose import config_directory;"
        "from specserve.config.load import load_run;"
        "print(load_run(['+experiment=topk1_v2']).config.policy.kind, config_directory())"
    )
    ran = subprocess.run(
        [sys.executable, "-c", code],
        cwd="/",
        env={**os.environ, "PYTHONPATH": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert f"batch_threshold {tmp_path / 'specserve/conf'}" == ran.stdout.strip(), ran.stderr
