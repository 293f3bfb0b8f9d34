import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from safetensors.numpy import save_file

from specserve.checkpoint.safetensors_header import (
    MalformedFileError,
    TensorHeader,
    decode_json,
    read_header,
)


def write(path: Path, header: object, data: bytes = b"", length: int | None = None) -> Path:
    """A file as the format describes it, or as `header` and `length` misdescribe it."""
    raw = header if isinstance(header, bytes) else json.dumps(header).encode()
    path.write_bytes(struct.pack("<Q", len(raw) if length is None else length) + raw + data)
    return path


def tensor(dtype: str, shape: list[int], begin: int, end: int) -> dict[str, Any]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [begin, end]}


def test_names_dtypes_and_shapes_are_those_that_the_reference_writer_stored(
    tmp_path: Path,
) -> None:
    tensors: dict[str, npt.NDArray[Any]] = {
        "a": np.zeros((2, 3), np.float32),
        "b": np.arange(5, dtype=np.int64),
        "c": np.array([True, False]),
        "empty": np.zeros((0, 4), np.float16),
    }
    save_file(tensors, tmp_path / "x.safetensors", metadata={"format": "pt"})

    header = read_header(tmp_path / "x.safetensors")

    assert {
        "a": TensorHeader(dtype="F32", shape=(2, 3)),
        "b": TensorHeader(dtype="I64", shape=(5,)),
        "c": TensorHeader(dtype="BOOL", shape=(2,)),
        "empty": TensorHeader(dtype="F16", shape=(0, 4)),
    } == header.tensors
    assert {"a": 24, "b": 40, "c": 2, "empty": 0} == {
        name: found.num_bytes for name, found in header.tensors.items()
    }
    assert tensors["b"].tobytes() == header.read_data("b")


def test_a_file_without_tensors_is_whole(tmp_path: Path) -> None:
    assert {} == read_header(write(tmp_path / "x", {})).tensors


F32 = tensor("F32", [2], 0, 8)


@pytest.mark.parametrize(
    ("header", "data", "length", "found"),
    [
        (b"", b"", 10**9, "claims 1000000000 bytes where 0 follow"),
        (b"{}", b"", 2**63 - 1, "claims"),
        (b"not json", b"", None, "malformed header"),
        (b"\xff\xfe{}", b"", None, "malformed header"),
        (b"[" * 50_000, b"", None, "malformed header"),
        ([], b"", None, "malformed header"),
        ({"a": 1}, b"", None, "malformed header"),
        ({"a": {"dtype": "F32", "shape": [2]}}, b"", None, "malformed header"),
        ({"a": F32 | {"shape": [2.5]}}, bytes(8), None, "malformed header"),
        ({"a": F32 | {"more": 1}}, bytes(8), None, "malformed header"),
        ({"a": F32 | {"dtype": "F33"}}, bytes(8), None, "unknown dtype 'F33'"),
        ({"a": F32 | {"shape": [-1, -2]}}, bytes(8), None, "impossible shape"),
        ({"a": F32 | {"shape": [3]}}, bytes(8), None, "8 bytes where F32 [3] takes 12"),
        ({"a": F32}, bytes(7), None, "7 bytes of data where the header declares 8: truncated"),
        ({"a": F32}, bytes(9), None, "9 bytes of data"),
        ({"a": F32, "b": F32}, bytes(8), None, "beginning at byte 0 of the data, where 8"),
        ({"a": tensor("F32", [2], 4, 12)}, bytes(12), None, "beginning at byte 4"),
        ({"a": tensor("F32", [2], -8, 0)}, bytes(8), None, "beginning at byte -8"),
    ],
)
def test_a_malformed_file_is_refused_with_what_was_found(
    tmp_path: Path, header: object, data: bytes, length: int | None, found: str
) -> None:
    with pytest.raises(MalformedFileError) as caught:
        read_header(write(tmp_path / "x", header, data, length))

    assert found in str(caught.value)


def test_a_header_above_the_formats_limit_is_refused_before_it_is_read(tmp_path: Path) -> None:
    path = tmp_path / "x"
    with path.open("wb") as file:
        file.write(struct.pack("<Q", 100_000_001))
        file.truncate(8 + 100_000_001)

    with pytest.raises(MalformedFileError, match="above 100000000"):
        read_header(path)


@pytest.mark.parametrize("content", [b"", b"\x01", b"1234567"])
def test_a_file_shorter_than_its_prefix_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "x").write_bytes(content)

    with pytest.raises(MalformedFileError, match="too short"):
        read_header(tmp_path / "x")


def test_a_git_lfs_pointer_is_called_one(tmp_path: Path) -> None:
    (tmp_path / "x").write_text("version https://git-lfs.github.com/spec/v1\noid sha256:0\n")

    with pytest.raises(MalformedFileError, match="git-lfs pointer"):
        read_header(tmp_path / "x")


@settings(deadline=None, max_examples=150)
@given(content=st.binary(max_size=200))
def test_random_bytes_give_nothing_but_malformed_file_error(
    tmp_path_factory: pytest.TempPathFactory, content: bytes
) -> None:
    path = tmp_path_factory.getbasetemp() / "random.safetensors"
    path.write_bytes(content)

    try:
        read_header(path)
    except MalformedFileError:
        return
    assert content[8:].strip() == b"{}"


@settings(deadline=None, max_examples=150)
@given(position=st.integers(0, 150), byte=st.integers(0, 255), cut=st.integers(0, 40))
def test_a_damaged_file_is_read_whole_or_refused(
    tmp_path_factory: pytest.TempPathFactory, position: int, byte: int, cut: int
) -> None:
    path = tmp_path_factory.getbasetemp() / "damaged.safetensors"
    write(path, {"a": F32, "b": tensor("I64", [3], 8, 32)}, bytes(32))
    content = bytearray(path.read_bytes())
    content[min(position, len(content) - 1)] = byte
    path.write_bytes(bytes(content[: len(content) - cut]))

    try:
        header = read_header(path)
    except MalformedFileError:
        return
    assert 32 == sum(found.num_bytes for found in header.tensors.values())


@pytest.mark.parametrize("data", [b"", b"{", b"\xff", b"NaN", b"1e999", b"[" * 50_000])
def test_what_is_no_strict_json_is_refused(data: bytes) -> None:
    with pytest.raises(MalformedFileError, match="JSON that can't be parsed"):
        decode_json(data)
