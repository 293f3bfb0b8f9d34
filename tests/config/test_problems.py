from typing import Any

import pytest

from specserve.config.compose import compose_tree
from specserve.config.validate import parse_run
from specserve.errors import ConfigError, Problem


@pytest.fixture
def tree() -> dict[str, Any]:
    return compose_tree(["+experiment=topk1_v2"])


def _problem(tree: dict[str, Any]) -> Problem:
    with pytest.raises(ConfigError) as refused:
        parse_run(tree)
    [problem] = refused.value.problems
    return problem


def test_an_experiment_without_its_header_is_named(tree: dict[str, Any]) -> None:
    tree["experiment"] = {"speculation": {"topk": 4}}

    problem = _problem(tree)

    assert "experiment" == problem.key
    assert "# @package _global_" in problem.fix


@pytest.mark.parametrize(
    ("section", "value", "option"),
    [
        ("quantization", False, "quantization=none"),
        ("quantization", "off", "quantization=none"),
        ("policy", False, "policy=off"),
        ("speculation", "eagle", "speculation=eagle_topk1"),
    ],
)
def test_a_word_in_place_of_a_section_means_an_option(
    tree: dict[str, Any], section: str, value: object, option: str
) -> None:
    tree[section] = value

    assert f"choose {option}" == _problem(tree).fix


def test_booleans_come_with_their_cause(tree: dict[str, Any]) -> None:
    tree["quantization"]["kind"] = False

    problem = _problem(tree)

    assert ("quantization.kind", "choose quantization=none") == (problem.key, problem.fix)
    assert "YAML reads off" in problem.expected


def test_a_value_that_fits_neither_form_is_one_problem(tree: dict[str, Any]) -> None:
    tree["speculation"]["num_draft_tokens"] = 4.0

    problem = _problem(tree)

    assert "an integer of at least 2 or auto, without a decimal point" == problem.expected
    assert "set speculation.num_draft_tokens=4" == problem.fix


def test_a_draft_that_is_null_names_the_field(tree: dict[str, Any]) -> None:
    tree["speculation"]["draft"]["path"] = None

    problem = _problem(tree)

    assert "speculation.draft.path" == problem.key
    assert "model.draft_path" in problem.expected


def test_a_key_that_another_kind_of_another_section_has(tree: dict[str, Any]) -> None:
    tree["policy"] = {"kind": "always", "group_size": 32}

    problem = _problem(tree)

    assert "quantization.group_size" in problem.expected
    assert "choose quantization=int4 and set quantization.group_size=32 in its place" == problem.fix


def test_every_key_of_an_unknown_section_is_named(tree: dict[str, Any]) -> None:
    tree["modle"] = {"name": "a", "path": "b"}
    with pytest.raises(ConfigError) as refused:
        parse_run(tree)

    assert ["modle.name", "modle.path"] == [p.key for p in refused.value.problems]


def test_a_name_with_nothing_near_gets_the_list(tree: dict[str, Any]) -> None:
    tree["parallel"]["xyzzy"] = 1

    problem = _problem(tree)

    assert "tensor_parallel, num_nodes" in problem.expected
    assert "remove it" == problem.fix
