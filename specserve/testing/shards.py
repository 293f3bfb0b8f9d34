"""Tensors saved one after the other as safetensors, in files of limited size."""

import json
from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save_file
from torch import Tensor

_LARGEST_SHARD = 4 * 2**30


def save_shards(
    tensors: Iterable[tuple[str, Tensor]],
    folder: Path,
    dtype: torch.dtype,
    *,
    largest_shard: int = _LARGEST_SHARD,
) -> None:
    """Write model.safetensors, or shards and their index where `largest_shard` bytes are exceeded.

    Floating point tensors are stored as `dtype`. No more than a shard is held in memory.
    """
    folder.mkdir(parents=True, exist_ok=True)
    shards: list[list[str]] = []
    pending: dict[str, Tensor] = {}
    total = size = 0
    for name, tensor in tensors:
        stored = (tensor.to(dtype) if tensor.is_floating_point() else tensor).contiguous()
        if pending and size + stored.nbytes > largest_shard:
            shards.append(_save(pending, folder, len(shards)))
            pending, size = {}, 0
        pending[name] = stored
        size += stored.nbytes
        total += stored.nbytes
    shards.append(_save(pending, folder, len(shards)))
    _name_shards(shards, folder, total)


def _save(tensors: dict[str, Tensor], folder: Path, index: int) -> list[str]:
    save_file(tensors, _unnamed(folder, index), metadata={"format": "pt"})
    return list(tensors)


def _name_shards(shards: list[list[str]], folder: Path, num_bytes: int) -> None:
    """Give the files their published names, which tell how many there are."""
    if len(shards) == 1:
        _unnamed(folder, 0).rename(folder / "model.safetensors")
        return
    weight_map: dict[str, str] = {}
    for index, names in enumerate(shards):
        file = f"model-{index + 1:05}-of-{len(shards):05}.safetensors"
        _unnamed(folder, index).rename(folder / file)
        weight_map |= dict.fromkeys(names, file)
    content = {"metadata": {"total_size": num_bytes}, "weight_map": weight_map}
    (folder / "model.safetensors.index.json").write_text(json.dumps(content, indent=2) + "\n")


def _unnamed(folder: Path, index: int) -> Path:
    return folder / f"shard-{index}.partial"
