import json
from pathlib import Path

import pytest
import torch
from safetensors.torch import save_file

from specserve.errors import EngineError
from specserve.torch_engine.stored import open_stored

CPU = torch.device("cpu")


def test_floating_tensors_are_converted_and_integers_are_not(tmp_path: Path) -> None:
    save_file(
        {"weight": torch.ones(2, dtype=torch.bfloat16), "d2t": torch.tensor([2**40])},
        tmp_path / "model.safetensors",
    )

    with open_stored(tmp_path, CPU) as stored:
        assert {"weight", "d2t"} == stored.names
        assert torch.float32 is stored.read("weight", torch.float32).dtype
        assert [2**40] == stored.read("d2t", torch.float32).tolist()


def test_shards_are_found_through_the_index(tmp_path: Path) -> None:
    for name, value in (("a", 1.0), ("b", 2.0)):
        save_file({name: torch.tensor([value])}, tmp_path / f"{name}.safetensors")
    index = {"weight_map": {"a": "a.safetensors", "b": "b.safetensors"}}
    (tmp_path / "model.safetensors.index.json").write_text(json.dumps(index))

    with open_stored(tmp_path, CPU) as stored:
        assert {"a", "b"} == stored.names
        assert [2.0] == stored.read("b", torch.float32).tolist()


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_a_value_that_is_not_finite_names_its_tensor(tmp_path: Path, value: float) -> None:
    save_file({"sick": torch.tensor([1.0, value])}, tmp_path / "model.safetensors")

    with open_stored(tmp_path, CPU) as stored, pytest.raises(EngineError, match="tensor sick"):
        stored.read("sick", torch.float32)


def test_a_value_beyond_the_asked_dtype_names_its_tensor(tmp_path: Path) -> None:
    save_file({"large": torch.tensor([1e6])}, tmp_path / "model.safetensors")

    with open_stored(tmp_path, CPU) as stored, pytest.raises(EngineError, match=r"large.*float16"):
        stored.read("large", torch.float16)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "model.safetensors"
    save_file({"weight": torch.ones(64)}, path)
    path.write_bytes(path.read_bytes()[:-8])

    with (
        pytest.raises(EngineError, match=r"model\.safetensors: no whole"),
        open_stored(tmp_path, CPU),
    ):
        pass


def test_a_missing_shard_is_named(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(
        '{"weight_map": {"a": "gone.safetensors"}}'
    )

    with pytest.raises(EngineError, match=r"gone\.safetensors"), open_stored(tmp_path, CPU):
        pass


@pytest.mark.parametrize("index", ["{", "{}", '{"weight_map": []}', "[]"])
def test_a_malformed_index_is_named(tmp_path: Path, index: str) -> None:
    (tmp_path / "model.safetensors.index.json").write_text(index)

    with pytest.raises(EngineError, match=r"index\.json"), open_stored(tmp_path, CPU):
        pass


def test_a_folder_without_weights_is_named(tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="neither"), open_stored(tmp_path, CPU):
        pass
