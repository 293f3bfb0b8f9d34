from pathlib import Path
from typing import Any

import pytest

from specserve.config.compose import compose_tree
from specserve.config.keys import all_keys, dotted_key, field_at, meant_key, nearest, option_of_kind

DATA = Path(__file__).parent.parent / "data"
EAGLE3: dict[str, Any] = {"speculation": {"kind": "eagle3", "num_steps": 3}}
OFF: dict[str, Any] = {"speculation": {"kind": "off"}}


def test_the_keys_are_the_reviewed_ones() -> None:
    """A new key is a promise: add it to tests/data/config_keys.txt and to CHANGELOG.md."""
    assert (DATA / "config_keys.txt").read_text().split() == all_keys()


@pytest.mark.parametrize(
    ("location", "key"),
    [
        (("speculation", "eagle3", "num_stepz"), "speculation.num_stepz"),
        (("speculation", "eagle3", "num_steps"), "speculation.num_steps"),
        (("speculation", "eagle3", "num_steps", "int"), "speculation.num_steps"),
        (("speculation", "eagle3", "draft"), "speculation.draft"),
        (("speculation",), "speculation"),
        (("modle",), "modle"),
    ],
)
def test_a_location_is_named_as_hydra_names_it(location: tuple[str, ...], key: str) -> None:
    assert key == dotted_key(location, EAGLE3)


def test_an_entry_of_a_list_is_named_by_its_list() -> None:
    tree = {"cuda_graph": {"batch_sizes": [1, "x"]}}

    assert "cuda_graph.batch_sizes" == dotted_key(("cuda_graph", "batch_sizes", "list", 1), tree)


def test_a_field_is_found_under_the_chosen_kind_only() -> None:
    assert field_at(["speculation", "num_steps"], EAGLE3) is not None
    assert field_at(["speculation", "num_steps"], OFF) is None


@pytest.mark.parametrize(
    ("key", "meant"),
    [
        ("speculation.topkk", "speculation.topk"),
        ("speculation.num-steps", "speculation.num_steps"),
        ("speculation.Num_Steps", "speculation.num_steps"),
        ("speculaton.num_steps", "speculation.num_steps"),
        ("disable_above", "policy.disable_above"),
        ("model.port", "server.port"),
        ("speculation.draft.topk", "speculation.topk"),
        ("nothing_like_it", None),
    ],
)
def test_the_key_that_was_meant(key: str, meant: str | None) -> None:
    assert meant == meant_key(key, EAGLE3)


def test_the_nearest_name_needs_to_be_near() -> None:
    assert nearest("int9", ["int8", "none"]) == "int8"
    assert nearest("xyz", ["int8", "none"]) is None


@pytest.mark.parametrize(
    ("group", "kind"),
    [("speculation", "eagle3"), ("speculation", "off"), ("policy", "always"), ("engine", "torch")],
)
def test_the_option_of_a_kind_has_that_kind(group: str, kind: str) -> None:
    tree = compose_tree([f"{group}={option_of_kind(group, kind)}"])

    assert kind == tree[group]["kind"]
