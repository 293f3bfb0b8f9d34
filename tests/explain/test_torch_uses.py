"""The table names every key of a run on engine=torch, and fields that a plan really has."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from specserve.check import check_run
from specserve.config.keys import all_keys
from specserve.config.leaves import leaves
from specserve.explain.torch_uses import torch_use

ROOT = Path(__file__).parent.parent.parent
# Keys of other engines, and of drafters that engine=torch refuses.
FOREIGN = (
    "engine.allow_untested_version",
    "engine.extra_args",
    "engine.kv_cache_dtype",
    "engine.memory_fraction",
    "engine.page_size",
    "engine.strict_effective",
    "speculation.capacity",
    "speculation.match",
    "speculation.max_breadth",
    "speculation.max_trie_depth",
    "speculation.min_breadth",
)


def test_every_key_has_a_use_or_belongs_to_another_engine() -> None:
    assert list(FOREIGN) == [key for key in all_keys() if torch_use(key) is None]


def test_the_fields_are_those_of_a_plan() -> None:
    report = check_run(["+experiment=topk1_v2"], [], None)
    assert report.plan is not None
    plan: Mapping[str, Any] = report.plan.model_dump()
    named = [use.plan_field for key in all_keys() if (use := torch_use(key)) and use.plan_field]

    for field in named:
        node: Any = plan
        for part in field.split("."):
            assert part in node, field
            node = node[part]


@pytest.mark.parametrize("experiment", ["baseline", "topk1_v2", "topk4_v1"])
def test_what_is_set_stands_in_the_named_field(experiment: str) -> None:
    """For values that are no more than passed on."""
    report = check_run([f"+experiment={experiment}"], [], None)
    assert report.plan is not None
    planned = dict(leaves(report.plan.model_dump()))
    for key, value in leaves(report.config.model_dump()):
        use = torch_use(key)
        if use and use.plan_field in planned and isinstance(value, int | bool):
            assert value == planned[use.plan_field], key
