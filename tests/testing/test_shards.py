import json
from pathlib import Path

import torch
from safetensors.torch import load_file

from specserve.testing.shards import save_shards

TENSORS = {name: torch.full((4,), float(index)) for index, name in enumerate("abcd")}


def test_one_shard_has_the_plain_name(tmp_path: Path) -> None:
    save_shards(TENSORS.items(), tmp_path, torch.float32)

    assert ["model.safetensors"] == [file.name for file in tmp_path.iterdir()]
    assert set("abcd") == set(load_file(tmp_path / "model.safetensors"))


def test_many_shards_are_named_in_an_index(tmp_path: Path) -> None:
    save_shards(TENSORS.items(), tmp_path, torch.float32, largest_shard=32)

    index = json.loads((tmp_path / "model.safetensors.index.json").read_text())
    loaded = {name: load_file(tmp_path / file)[name] for name, file in index["weight_map"].items()}
    assert {"total_size": 64} == index["metadata"]
    assert {
        "model-00001-of-00002.safetensors",
        "model-00002-of-00002.safetensors",
        "model.safetensors.index.json",
    } == {file.name for file in tmp_path.iterdir()}
    assert {name: index_ for index_, name in enumerate("abcd")} == {
        name: int(tensor[0]) for name, tensor in loaded.items()
    }


def test_only_floating_point_tensors_are_stored_as_the_dtype(tmp_path: Path) -> None:
    mixed = {"weight": torch.ones(2), "d2t": torch.ones(2, dtype=torch.int64)}

    save_shards(mixed.items(), tmp_path, torch.bfloat16)

    loaded = load_file(tmp_path / "model.safetensors")
    assert torch.bfloat16 == loaded["weight"].dtype
    assert torch.int64 == loaded["d2t"].dtype
