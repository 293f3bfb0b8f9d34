from typing import Any

import pytest
from jsonschema import Draft202012Validator

from specserve.config.compose import compose_tree
from specserve.config.keys import all_keys
from specserve.schema.document import models_schema, partial, run_schema, with_partials


@pytest.fixture(scope="module")
def validator() -> Draft202012Validator:
    schema = run_schema()
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.fixture
def run() -> dict[str, Any]:
    return compose_tree(["+experiment=topk1_v2"])


def test_a_composed_run_is_valid(validator: Draft202012Validator, run: dict[str, Any]) -> None:
    assert [] == list(validator.iter_errors(run))


@pytest.mark.parametrize(
    ("section", "key", "value"),
    [
        ("speculation", "topkk", 2),
        ("speculation", "topk", 0),
        ("speculation", "topk", "many"),
        ("policy", "while_off", "sometimes"),
        ("policy", "kind", False),
        ("server", "port", 70000),
        ("model", "trust_remote_code", "no"),
    ],
)
def test_what_the_models_refuse_the_schema_refuses(
    validator: Draft202012Validator, run: dict[str, Any], section: str, key: str, value: object
) -> None:
    run[section][key] = value

    assert not validator.is_valid(run)


def test_a_missing_key_and_an_unknown_section_are_refused(
    validator: Draft202012Validator, run: dict[str, Any]
) -> None:
    assert not validator.is_valid(run | {"experiment": {}})
    del run["server"]["port"]
    assert not validator.is_valid(run)


@pytest.mark.parametrize("value", ["???", "${model.draft_path}", "${oc.env:PORT,8000}"])
def test_any_value_may_be_left_to_hydra(
    validator: Draft202012Validator, run: dict[str, Any], value: str
) -> None:
    run["server"]["port"] = value
    run["policy"] = value if value != "???" else run["policy"]

    assert validator.is_valid(run)


def test_every_key_is_described_by_itself_or_by_its_section() -> None:
    """An editor shows what a key is for, and never pydantic's made-up titles."""
    schema = models_schema()
    models = schema["$defs"].values()

    assert all(model["description"] for model in models if "properties" in model)
    assert not any(
        "title" in key for model in models for key in model.get("properties", {}).values()
    )


def test_no_key_is_left_out() -> None:
    definitions = models_schema()["$defs"]
    known = {name for model in definitions.values() for name in model.get("properties", {})}

    assert {key.rpartition(".")[2] for key in all_keys()} <= known


def test_a_partial_model_demands_no_key_and_still_knows_them_all() -> None:
    definitions = with_partials(models_schema()["$defs"])
    whole, part = definitions["Eagle3Speculation"], definitions[partial("Eagle3Speculation")]

    assert "draft" in whole["required"]
    assert "required" not in part
    assert list(whole["properties"]) == list(part["properties"])
    assert not part["additionalProperties"]


def test_lines_of_a_table_are_whole_in_a_partial_model_too() -> None:
    definitions = with_partials(models_schema()["$defs"])
    schedule = definitions[partial("DepthSchedulePolicy")]["properties"]["schedule"]

    assert {"$ref": "#/$defs/DepthStep"} == schedule["anyOf"][0]["items"]
