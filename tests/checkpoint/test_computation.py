from typing import Any

import pytest

from specserve.checkpoint.computation import computation_problems, rope_type


@pytest.mark.parametrize(
    ("config", "kind"),
    [
        ({}, "default"),
        ({"rope_scaling": None}, "default"),
        ({"rope_parameters": {"rope_type": "llama3"}}, "llama3"),
        ({"rope_scaling": {"type": "yarn"}}, "yarn"),
        ({"rope_scaling": {"rope_type": "linear", "factor": 2}}, "linear"),
        ({"rope_scaling": {"rope_type": None}}, "default"),
        ({"text_config": {"rope_scaling": {"type": "yarn"}}}, "yarn"),
        ({"rope_scaling": "odd"}, "odd"),
    ],
)
def test_the_rope_type_is_found_in_every_spelling(config: dict[str, Any], kind: str) -> None:
    assert kind == rope_type(config)


def test_what_is_computed_is_accepted() -> None:
    config = {"hidden_act": "silu", "rope_parameters": {"rope_type": "llama3"}}

    assert [] == computation_problems(config, key="model.path", path="/m")


def test_each_feature_that_is_not_computed_is_refused_by_name() -> None:
    config = {
        "hidden_act": "gelu",
        "rope_scaling": {"type": "yarn"},
        "partial_rotary_factor": 0.5,
    }

    problems = computation_problems(config, key="model.path", path="/m")

    assert ["config.json says 'yarn'", "config.json says 'gelu'", "config.json says 0.5"] == [
        problem.expected.rsplit("; ", 1)[1] for problem in problems
    ]


def test_a_partial_rotation_is_found_in_the_rope_section_too() -> None:
    config = {"rope_parameters": {"rope_type": "default", "partial_rotary_factor": 0.25}}

    [problem] = computation_problems(config, key="model.path", path="/m")

    assert "config.json says 0.25" in problem.expected
