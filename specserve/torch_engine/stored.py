"""The tensors that a checkpoint folder holds, read one at a time."""

from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import msgspec
import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor

from specserve.errors import EngineError

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"


class _Index(msgspec.Struct):
    weight_map: dict[str, str]


class StoredTensors:
    """Open files and the tensors in them. Made by `open_stored` only."""

    def __init__(self, folder: Path, files: Mapping[str, Any]) -> None:
        self.folder = folder
        self._files = files

    @property
    def names(self) -> set[str]:
        """Every tensor of the checkpoint."""
        return set(self._files)

    def read(self, name: str, dtype: torch.dtype) -> Tensor:
        """One tensor on the device; if it is floating, in `dtype`.

        Raises EngineError that names a tensor with NaN or infinite values: in the file, or in
        `dtype` because that can't hold them.
        """
        tensor: Tensor = self._files[name].get_tensor(name)
        if not tensor.is_floating_point():
            return tensor
        tensor = tensor.to(dtype)
        if not tensor.isfinite().all():
            raise EngineError(f"{self.folder}: tensor {name} holds NaN or infinity as {dtype}")
        return tensor


@contextmanager
def open_stored(folder: Path, device: torch.device) -> Iterator[StoredTensors]:
    """The checkpoint in `folder`, to be read onto `device`.

    Raises EngineError if a file is missing, truncated or no safetensors file.
    """
    with ExitStack() as stack:
        files: dict[str, Any] = {}
        for path in _paths(folder):
            try:
                file = stack.enter_context(safe_open(path, framework="pt", device=str(device)))
            except (SafetensorError, OSError) as error:
                raise EngineError(f"{path}: no whole safetensors file ({error})") from error
            files |= dict.fromkeys(file.keys(), file)
        yield StoredTensors(folder, files)


def _paths(folder: Path) -> list[Path]:
    if (folder / _SINGLE).is_file():
        return [folder / _SINGLE]
    try:
        index = msgspec.json.decode((folder / _INDEX).read_bytes(), type=_Index)
    except OSError as error:
        raise EngineError(f"{folder}: neither {_SINGLE} nor {_INDEX} can be read") from error
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise EngineError(f"{folder / _INDEX}: no index of safetensors files ({error})") from error
    return [folder / name for name in sorted(set(index.weight_map.values()))]
