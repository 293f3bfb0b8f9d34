"""The shipped schemas are those of the models, and every shipped file is valid by its own."""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator

from specserve.config.compose import compose_tree, config_directory
from specserve.config.run import RunConfig
from specserve.schema.files import (
    FILE,
    change_schema,
    option_schema,
    schema_files,
    write_schema_files,
)

CONF = config_directory()
REGENERATE = "run `specserve schema --output conf`"
POINTER = f"# yaml-language-server: $schema={FILE}"
FILES = sorted(f for f in CONF.rglob("*.yaml") if f.relative_to(CONF).parts[0] != "hydra")


@cache
def validator(path: Path) -> Draft202012Validator:
    schema = json.loads(path.read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


def errors(schema: dict[str, Any], content: str) -> list[str]:
    found = Draft202012Validator(schema).iter_errors(yaml.safe_load(content))
    return [error.message for error in found]


@pytest.mark.parametrize("path", sorted(schema_files()), ids=str)
def test_the_shipped_schemas_are_up_to_date(path: Path) -> None:
    assert schema_files()[path] == (CONF / path).read_text(encoding="utf-8"), REGENERATE


def test_there_is_one_for_each_group_and_no_other() -> None:
    shipped = {path.relative_to(CONF) for path in CONF.rglob("*.json")}

    assert set(schema_files()) == shipped, REGENERATE
    groups = {path.parent.name for path in shipped if path.parent.name}
    assert {*RunConfig.model_fields, "experiment"} == groups


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.relative_to(CONF)))
def test_every_shipped_file_is_valid_by_the_schema_that_it_names(file: Path) -> None:
    """Beside it, in its first line; in an experiment below the package, which Hydra reads first."""
    lines = file.read_text(encoding="utf-8").splitlines()
    assert POINTER == lines[1 if lines[0].startswith("# @package") else 0]

    found = validator(file.parent / FILE).iter_errors(yaml.safe_load(file.read_text()))

    assert [] == [error.message for error in found]


@pytest.mark.parametrize(
    ("experiment", "takes_effect"),
    [
        (f"# @package _global_\n{POINTER}\nserver:\n  port: 9999\n", True),
        (f"{POINTER}\n# @package _global_\nserver:\n  port: 9999\n", False),
    ],
)
def test_hydra_finds_the_package_in_front_of_the_schema_only(
    tmp_path: Path, experiment: str, takes_effect: bool
) -> None:
    (tmp_path / "experiment").mkdir()
    (tmp_path / "experiment/mine.yaml").write_text(experiment)

    tree = compose_tree(["+experiment=mine"], [tmp_path])

    assert takes_effect == (tree["server"]["port"] == 9999)


@pytest.mark.parametrize(
    ("content", "valid"),
    [
        ("kind: always", True),
        ('kind: "off"', True),
        ("kind: off", False),  # a boolean
        ("kind: sometimes", False),
        ("kind: batch_threshold\ndisable_above: 4", False),  # the rest is missing
        ("defaults: [batch_threshold, _self_]\ndisable_above: 4", True),
        ("defaults: [batch_threshold, _self_]\ndisable_abov: 4", False),
        ("defaults: [batch_threshold, _self_]\ndisable_above: ${server.port}", True),
        ("defaults: batch_threshold", False),
    ],
)
def test_an_option_has_all_keys_of_its_kind_or_a_defaults_list(content: str, valid: bool) -> None:
    assert valid == (not errors(option_schema("policy"), content))


@pytest.mark.parametrize(
    ("content", "valid"),
    [
        ("defaults:\n  - override /policy: always\nserver:\n  port: 1", True),
        ("policy:\n  disable_above: 4", True),
        ("policy:\n  disable_abov: 4", False),
        ("servers:\n  port: 1", False),
        ("speculation:\n  draft:\n    path: ???", True),
        ("speculation:\n  draft:\n    pathh: x", False),
        ("policy:\n  schedule: [{up_to: 4, num_steps: 3}]", True),
        ("policy:\n  schedule: [{up_to: 4}]", False),
        ("hydra:\n  run:\n    dir: x", True),
        ("defaults:\n  - {a: b, c: d}", False),
    ],
)
def test_an_experiment_changes_any_keys_that_exist(content: str, valid: bool) -> None:
    assert valid == (not errors(change_schema("x"), content))


def test_files_are_laid_out_as_conf_is(tmp_path: Path) -> None:
    written = list(write_schema_files(tmp_path / "new"))

    assert {tmp_path / "new" / path for path in schema_files()} == set(written)
    assert (tmp_path / "new/policy/schema.json").read_text() == schema_files()[
        Path("policy/schema.json")
    ]
