from typing import Any

import pytest

from specserve.checkpoint.dtype import as_activation_dtype, is_activation_dtype, stored_dtype
from specserve.checkpoint.header import CheckpointFacts, TensorHeader


@pytest.mark.parametrize(
    ("config", "dtype"),
    [
        ({"dtype": "float16"}, "float16"),
        ({"torch_dtype": "bfloat16"}, "bfloat16"),
        ({"text_config": {"dtype": "bfloat16"}}, "bfloat16"),
        ({"dtype": "bfloat16", "text_config": {}}, "bfloat16"),
        ({"dtype": None}, "float32"),
    ],
)
def test_the_config_says_it_and_else_the_headers(
    target: CheckpointFacts, config: dict[str, Any], dtype: str
) -> None:
    assert dtype == stored_dtype(target.model_copy(update={"config": config}))


def test_most_numbers_decide_not_most_tensors(target: CheckpointFacts) -> None:
    tensors = {f"norm{i}": TensorHeader(dtype="F32", shape=(8,)) for i in range(9)}
    tensors["matrix"] = TensorHeader(dtype="BF16", shape=(64, 64))
    tensors["ids"] = TensorHeader(dtype="I64", shape=(10**6,))

    facts = target.model_copy(update={"config": {}, "tensors": tensors})

    assert "bfloat16" == stored_dtype(facts)


def test_without_config_and_headers_nothing_is_known(target: CheckpointFacts) -> None:
    facts = target.model_copy(update={"config": {}, "tensors": None})

    assert stored_dtype(facts) is None


@pytest.mark.parametrize("name", ["float64", "float8_e4m3fn", "int8", "None"])
def test_only_the_three_types_are_computed_in(name: str) -> None:
    assert not is_activation_dtype(name)
    with pytest.raises(ValueError, match="expected one of float32, bfloat16, float16"):
        as_activation_dtype(name)
