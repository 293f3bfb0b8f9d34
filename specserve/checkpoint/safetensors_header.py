"""The header of one safetensors file: parsed, and checked against the file's own size."""

import struct
from math import prod
from pathlib import Path
from typing import Any

import msgspec

from specserve.config.strict import StrictModel

_DTYPE_BITS = {
    "BOOL": 8,
    "U8": 8,
    "I8": 8,
    "F8_E4M3": 8,
    "F8_E5M2": 8,
    "F8_E8M0": 8,
    "I16": 16,
    "U16": 16,
    "F16": 16,
    "BF16": 16,
    "I32": 32,
    "U32": 32,
    "F32": 32,
    "F64": 64,
    "I64": 64,
    "U64": 64,
    "C64": 64,
    "F4": 4,
    "F6_E2M3": 6,
    "F6_E3M2": 6,
}
_PREFIX_BYTES = 8
_MAX_HEADER_BYTES = 100_000_000  # the limit of the format's reference implementation
_LFS_POINTER = b"version https://git-lfs"


class TensorHeader(StrictModel):
    """One tensor as the safetensors header declares it; `dtype` in its words (F32, BF16)."""

    dtype: str
    shape: tuple[int, ...]

    @property
    def numel(self) -> int:
        """Number of elements; 1 for a scalar."""
        return prod(self.shape)

    @property
    def num_bytes(self) -> int:
        """Bytes in the file. `dtype` must be one that `read_header` accepts."""
        return self.numel * _DTYPE_BITS[self.dtype] // 8


class MalformedFileError(Exception):
    """What a file is instead of what it should be; its reader names file, key and fix."""


class _Entry(msgspec.Struct, forbid_unknown_fields=True):
    dtype: str
    shape: tuple[int, ...]
    data_offsets: tuple[int, int]


class SafetensorsHeader:
    """The tensors of one file, and where their data lies. Made by `read_header` only."""

    def __init__(self, path: Path, raw: bytes, entries: dict[str, _Entry]) -> None:
        self.path = path
        self._entries = entries
        self.raw = raw
        self.tensors = {
            name: TensorHeader.model_construct(dtype=entry.dtype, shape=entry.shape)
            for name, entry in entries.items()
        }

    def read_data(self, name: str) -> bytes:
        """The raw little-endian data of one tensor of this file."""
        begin, end = self._entries[name].data_offsets
        with self.path.open("rb") as file:
            file.seek(_PREFIX_BYTES + len(self.raw) + begin)
            return file.read(end - begin)


def read_header(path: Path) -> SafetensorsHeader:
    """Parse the header of the safetensors file at `path`.

    Holds afterwards: every dtype is known, sizes agree with shapes, and the data fills the file
    without a hole or an overlap. Raises MalformedFileError, or OSError if it can't be read.
    """
    raw, data_bytes = _read_raw(path)
    entries = _decode(raw)
    _check_entries(entries, data_bytes)
    return SafetensorsHeader(path, raw, entries)


def decode_json(data: bytes) -> Any:  # noqa: ANN401 - JSON is any of its types
    """Plain values from strict UTF-8 JSON. Raises MalformedFileError."""
    try:
        return msgspec.json.decode(data)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFileError(f"JSON that can't be parsed ({error})") from error


def _read_raw(path: Path) -> tuple[bytes, int]:
    with path.open("rb") as file:
        prefix = file.read(_PREFIX_BYTES)
        if _LFS_POINTER.startswith(prefix) and prefix:
            raise MalformedFileError("a git-lfs pointer in place of the weights")
        if len(prefix) < _PREFIX_BYTES:
            raise MalformedFileError(f"{len(prefix)} bytes, too short for a header")
        (length,) = struct.unpack("<Q", prefix)
        rest = path.stat().st_size - _PREFIX_BYTES
        if length > rest:
            raise MalformedFileError(
                f"a header that claims {length} bytes where {rest} follow: truncated, "
                "or no safetensors file"
            )
        if length > _MAX_HEADER_BYTES:
            raise MalformedFileError(f"a header of {length} bytes, above {_MAX_HEADER_BYTES}")
        return file.read(length), rest - length


def _decode(raw: bytes) -> dict[str, _Entry]:
    try:
        items = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
        items.pop("__metadata__", None)
        return {name: msgspec.json.decode(item, type=_Entry) for name, item in items.items()}
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFileError(f"a malformed header ({error})") from error


def _check_entries(entries: dict[str, _Entry], data_bytes: int) -> None:
    for name, entry in entries.items():
        _check_size(name, entry)
    position = 0
    for name, entry in sorted(entries.items(), key=lambda item: item[1].data_offsets):
        if entry.data_offsets[0] != position:
            raise MalformedFileError(
                f"tensor {name!r} beginning at byte {entry.data_offsets[0]} of the data, "
                f"where {position} is next"
            )
        position = entry.data_offsets[1]
    if position != data_bytes:
        raise MalformedFileError(
            f"{data_bytes} bytes of data where the header declares {position}: "
            "truncated, or not written to the end"
        )


def _check_size(name: str, entry: _Entry) -> None:
    if entry.dtype not in _DTYPE_BITS:
        raise MalformedFileError(f"tensor {name!r} of the unknown dtype {entry.dtype!r}")
    if any(size < 0 for size in entry.shape):
        raise MalformedFileError(f"tensor {name!r} of the impossible shape {list(entry.shape)}")
    size = prod(entry.shape) * _DTYPE_BITS[entry.dtype] // 8
    begin, end = entry.data_offsets
    if end - begin != size:
        raise MalformedFileError(
            f"tensor {name!r} with {end - begin} bytes where {entry.dtype} "
            f"{list(entry.shape)} takes {size}"
        )
