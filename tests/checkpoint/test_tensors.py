from pathlib import Path
from typing import Any, Literal

import pytest

from specserve.checkpoint.architecture import read_dimensions
from specserve.checkpoint.header import CheckpointFacts, TensorHeader, read_checkpoint
from specserve.checkpoint.tensors import ExpectedTensors, compare, layout, target_tensors
from specserve.testing.checkpoints import write_target


def expected(facts: CheckpointFacts) -> ExpectedTensors:
    size = read_dimensions(facts.config, key="model.path", path=facts.path)
    return target_tensors(layout(facts.config), size)


@pytest.mark.parametrize(
    ("architecture", "tied", "extra"),
    [
        ("llama", False, {}),
        ("llama", True, {}),
        ("llama", False, {"attention_bias": True, "mlp_bias": True}),
        ("mistral", False, {}),
        ("qwen2", False, {}),
        ("qwen2", True, {}),
        ("qwen3", False, {}),
        ("qwen3", False, {"attention_bias": True}),
    ],
)
def test_the_expected_set_is_what_transformers_saves(
    tmp_path: Path,
    architecture: Literal["llama", "mistral", "qwen2", "qwen3"],
    tied: bool,
    extra: dict[str, Any],
) -> None:
    facts = read_checkpoint(
        write_target(
            tmp_path,
            architecture=architecture,
            num_layers=2,
            tie_embeddings=tied,
            config_overrides=extra,
        )
    )
    found = {name: header.shape for name, header in (facts.tensors or {}).items()}

    assert dict(expected(facts).required) == found


def header(*shape: int) -> TensorHeader:
    return TensorHeader(dtype="F32", shape=shape)


EXPECTED = ExpectedTensors(required={"a": (2,), "b": (3, 4)}, optional={"c": (5,)})


def test_missing_unexpected_and_misshapen_tensors_are_told_together() -> None:
    difference = compare(EXPECTED, {"b": header(4, 3), "c": header(1), "d": header(1)})

    assert difference
    assert (
        "missing: a; unexpected: d; of another shape: b [4, 3] instead of [3, 4], "
        "c [1] instead of [5]" == str(difference)
    )


def test_optional_tensors_and_old_rotary_buffers_may_be_there() -> None:
    found = {"a": header(2), "b": header(3, 4), "c": header(5)}

    assert not compare(EXPECTED, found)
    assert not compare(
        EXPECTED, found | {"model.layers.0.self_attn.rotary_emb.inv_freq": header(8)}
    )


def test_a_long_list_is_cut_with_its_rest_counted() -> None:
    difference = compare(EXPECTED, {f"x{i}": header(1) for i in range(20)})

    assert "unexpected: x0, x1, x10, x11, x12, x13 and 14 more" in str(difference)
