from typing import Any

import pytest

from specserve.config.compose import compose_tree
from specserve.config.validate import parse_run
from specserve.errors import ConfigError


def _keys(tree: dict[str, Any]) -> set[str]:
    with pytest.raises(ConfigError) as refused:
        parse_run(tree)
    return {problem.key for problem in refused.value.problems}


@pytest.fixture
def tree() -> dict[str, Any]:
    return compose_tree(["+experiment=topk1_v2"])


def test_a_rule_speaks_although_another_section_is_invalid(tree: dict[str, Any]) -> None:
    tree["policy"]["resume_at"] = 9
    tree["server"]["port"] = "80"

    assert {"policy.resume_at", "server.port"} == _keys(tree)


def test_a_rule_is_silent_about_a_section_that_is_invalid(tree: dict[str, Any]) -> None:
    """What policy means is not known while its own value is wrong."""
    tree["policy"]["resume_at"] = "nine"

    assert {"policy.resume_at"} == _keys(tree)


def test_a_missing_section_is_named(tree: dict[str, Any]) -> None:
    del tree["server"], tree["policy"]

    assert {"server.host", "server.port", "policy"} <= _keys(tree)


def test_an_empty_tree_is_refused_by_name() -> None:
    assert {"model.path", "policy", "task.kind"} <= _keys({})


@pytest.mark.parametrize("value", [False, "off", 3, None, [], "int4"])
def test_a_section_must_be_a_section(tree: dict[str, Any], value: object) -> None:
    tree["quantization"] = value

    assert {"quantization"} == _keys(tree)
