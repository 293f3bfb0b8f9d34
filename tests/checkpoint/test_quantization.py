"""E01 as a table: what the target asks, what the draft asks, what the draft's checkpoint says."""

from typing import Any

import pytest

from specserve.checkpoint.architecture import Dimensions
from specserve.checkpoint.quantization import (
    StoredQuantization,
    draft_group_size,
    draft_problems,
    draft_scheme,
    stored_quantization,
    target_problems,
)
from specserve.config.quantization import (
    CompressedTensorsInt4,
    DraftQuantization,
    Int4Quantization,
    Int8Quantization,
    NoQuantization,
    QuantizationConfig,
)

AWQ = StoredQuantization(method="awq", num_bits=4, group_size=128)
COMPRESSED = StoredQuantization(method="compressed-tensors", num_bits=4, group_size=32)
COMPRESSED_CONFIG: dict[str, Any] = {
    "quantization_config": {
        "quant_method": "compressed-tensors",
        "config_groups": {"group_0": {"weights": {"num_bits": 4, "group_size": 32}}},
    }
}


def size(hidden_size: int = 256) -> Dimensions:
    return Dimensions(
        num_layers=8,
        hidden_size=hidden_size,
        intermediate_size=512,
        num_heads=4,
        num_kv_heads=2,
        head_dim=64,
        vocab_size=100,
        max_positions=128,
        tie_word_embeddings=False,
        mla=None,
        moe=None,
    )


def asked(
    kind: str, draft: DraftQuantization = "none", group_size: int = 128
) -> QuantizationConfig:
    match kind:
        case "int8":
            return Int8Quantization(kind="int8", draft=draft)
        case "int4":
            return Int4Quantization(kind="int4", group_size=group_size, draft=draft)
        case "compressed_tensors_int4":
            return CompressedTensorsInt4(
                kind="compressed_tensors_int4", group_size=group_size, draft=draft
            )
        case _:
            return NoQuantization(kind="none", draft=draft)


KINDS = ["none", "int8", "int4", "compressed_tensors_int4"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draft", ["none", "inherit", "int8", "int4"])
def test_a_plain_draft_has_one_resolved_scheme_or_a_refusal(
    kind: str, draft: DraftQuantization
) -> None:
    inherited = {"none": "none", "int8": "int8", "int4": "int4"}
    expected = inherited.get(kind, "refused") if draft == "inherit" else draft
    config = asked(kind, draft)
    problems = draft_problems(config, None, size())

    assert expected == ("refused" if problems else draft_scheme(config))


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("draft", ["none", "inherit", "int8", "int4"])
def test_a_draft_with_an_own_section_is_refused_under_every_setting(
    kind: str, draft: DraftQuantization
) -> None:
    [problem] = draft_problems(asked(kind, draft), AWQ, size())

    assert ("quantization.draft", draft) == (problem.key, problem.value)
    assert "awq (4 bits, groups of 128)" in problem.expected


@pytest.mark.parametrize(
    ("kind", "stored", "accepted"),
    [
        ("none", None, True),
        ("int8", None, True),
        ("int4", None, True),
        ("compressed_tensors_int4", None, False),
        ("none", COMPRESSED, False),
        ("int8", COMPRESSED, False),
        ("int4", COMPRESSED, False),
        ("compressed_tensors_int4", COMPRESSED, True),
        ("compressed_tensors_int4", AWQ, False),
        ("none", AWQ, False),
    ],
)
def test_the_targets_scheme_is_what_the_checkpoint_holds(
    kind: str, stored: StoredQuantization | None, accepted: bool
) -> None:
    assert accepted == (not target_problems(asked(kind, group_size=32), stored, size()))


def test_a_stored_scheme_that_was_not_asked_for_names_the_options_to_set() -> None:
    [problem] = target_problems(asked("none"), COMPRESSED, size())

    assert (
        "set quantization=compressed_tensors_int4 engine=sglang quantization.group_size=32"
        == problem.fix
    )


def test_another_group_size_than_the_stored_one_is_refused() -> None:
    config = asked("compressed_tensors_int4", group_size=64)

    [problem] = target_problems(config, COMPRESSED, size())

    assert "set quantization.group_size=32" == problem.fix


@pytest.mark.parametrize(
    ("hidden_size", "group_size", "fix"),
    [
        (256, 128, None),
        (192, 128, "set quantization.group_size=64"),
        (96, 64, "set quantization.group_size=32"),
        (80, 32, "set quantization=int8"),
    ],
)
def test_groups_divide_the_inputs_of_every_layer(
    hidden_size: int, group_size: int, fix: str | None
) -> None:
    found = target_problems(asked("int4", group_size=group_size), None, size(hidden_size))

    assert ([] if fix is None else [fix]) == [problem.fix for problem in found]


def test_a_four_bit_draft_obeys_the_same_rule() -> None:
    [problem] = draft_problems(asked("none", "int4"), None, size(hidden_size=80))

    assert ("quantization.draft", "set quantization.draft=none") == (problem.key, problem.fix)


def test_a_four_bit_draft_has_the_targets_groups_or_the_smallest() -> None:
    assert 64 == draft_group_size(asked("int4", "inherit", group_size=64))
    assert 32 == draft_group_size(asked("none", "int4"))


@pytest.mark.parametrize(
    ("config", "stored"),
    [
        ({}, None),
        ({"quantization_config": None}, None),
        ({"quantization_config": {}}, None),
        (COMPRESSED_CONFIG, COMPRESSED),
        ({"text_config": COMPRESSED_CONFIG}, COMPRESSED),
        (
            {"quantization_config": {"quant_method": "awq", "bits": 4, "group_size": 128}},
            AWQ,
        ),
        (
            {"quantization_config": {"quant_method": "fp8"}},
            StoredQuantization(method="fp8", num_bits=None, group_size=None),
        ),
        (
            {"quantization_config": "awq"},
            StoredQuantization(method="awq", num_bits=None, group_size=None),
        ),
        (
            {"quantization_config": {"config_groups": {"g": 3}}},
            StoredQuantization(method="an unnamed method", num_bits=None, group_size=None),
        ),
    ],
)
def test_the_stored_section_is_read_wherever_it_stands(
    config: dict[str, Any], stored: StoredQuantization | None
) -> None:
    assert stored == stored_quantization(config)
