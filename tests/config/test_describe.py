from typing import Any

import pytest

from specserve.config.describe import closest_option, expectation, mended
from specserve.config.keys import field_at

TREE: dict[str, Any] = {
    "speculation": {"kind": "eagle3"},
    "quantization": {"kind": "int4"},
    "policy": {"kind": "batch_threshold"},
    "engine": {"kind": "sglang"},
}


@pytest.mark.parametrize(
    ("key", "words"),
    [
        ("speculation.num_steps", "an integer from 1 to 16"),
        ("speculation.num_draft_tokens", "an integer of at least 2 or auto"),
        ("speculation.draft.aux_layer_ids", "a list of integers of at least 0 or auto"),
        ("quantization.group_size", "an integer from 32 to 256, a multiple of 32"),
        ("policy.resume_at", "an integer of at least 0"),
        ("build.limit_seconds.load_target", "a number above 0"),
        ("engine.memory_fraction", "a number above 0 and below 1 or auto"),
        ("model.trust_remote_code", "true or false"),
        ("model.name", "text that is not empty or auto"),
        ("server.api_key", "text that is not empty or null"),
        ("scheduler.kind", "one of overlap, sync"),
        (
            "policy",
            "one of off, always, batch_threshold, depth_schedule, acceptance, cost_model",
        ),
        ("parallel", "a section with the keys tensor_parallel, num_nodes"),
    ],
)
def test_what_a_field_accepts_in_plain_words(key: str, words: str) -> None:
    field = field_at(key.split("."), TREE)

    assert field is not None
    assert words == expectation(field)


@pytest.mark.parametrize(
    ("key", "wrong", "near"),
    [
        ("speculation.num_steps", "4", 4),
        ("speculation.num_steps", 3.0, 3),
        ("speculation.num_steps", 99, 16),
        ("speculation.num_steps", -2, 1),
        ("speculation.num_steps", True, 1),
        ("speculation.num_steps", "three", 1),
        ("speculation.num_steps", float("nan"), 1),
        ("speculation.num_draft_tokens", "4", 4),
        ("speculation.num_draft_tokens", "aut", "auto"),
        ("speculation.num_draft_tokens", None, "auto"),
        ("quantization.group_size", 100, 96),
        ("quantization.group_size", 1000, 256),
        ("engine.memory_fraction", 1.5, "auto"),
        ("engine.memory_fraction", "0.8", 0.8),
        ("build.limit_seconds.load_target", 0, 1.0),
        ("model.trust_remote_code", "False", False),
        ("model.name", 7, "7"),
        ("scheduler.kind", "synch", "sync"),
        ("cuda_graph.kind", False, "off"),
        ("server.api_key", 5, "5"),
    ],
)
def test_a_wrong_value_is_mended_to_a_near_one(key: str, wrong: object, near: object) -> None:
    field = field_at(key.split("."), TREE)

    assert field is not None
    assert near == mended(field, wrong)
    assert type(near) is type(mended(field, wrong))


SCHEDULE: dict[str, Any] = {"policy": {"kind": "depth_schedule"}}


@pytest.mark.parametrize(
    ("wrong", "near"),
    [
        ([], [{"up_to": 8, "num_steps": 1}]),
        ("4:3", [{"up_to": 8, "num_steps": 1}]),
        (
            [{"up_to": 4, "num_steps": 17}, {"up_to": "8", "num_steps": 0}, 7],
            [
                {"up_to": 4, "num_steps": 16},
                {"up_to": 8, "num_steps": 0},
                {"up_to": 8, "num_steps": 1},
            ],
        ),
    ],
)
def test_a_table_is_mended_line_by_line(wrong: object, near: object) -> None:
    field = field_at(["policy", "schedule"], SCHEDULE)

    assert field is not None
    assert near == mended(field, wrong)


def test_a_table_is_described_by_what_a_line_holds() -> None:
    field = field_at(["policy", "schedule"], SCHEDULE)

    assert field is not None
    assert (
        "a list of {up_to (an integer of at least 1), num_steps (an integer from 0 to 16)}"
        == expectation(field)
    )


@pytest.mark.parametrize("no", ["off", "no", "False", "none", False, None, ""])
def test_a_plain_no_means_none_where_there_is_one(no: object) -> None:
    assert "none" == closest_option(["int8", "none"], no)
    assert closest_option(["int8", "int4"], no) is None
