"""Read a checkpoint folder: config.json, safetensors headers, tokenizer; no weight but d2t, t2d."""

import hashlib
import struct
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from specserve.checkpoint.safetensors_header import (
    MalformedFileError,
    SafetensorsHeader,
    TensorHeader,
    decode_json,
    read_header,
)
from specserve.checkpoint.tokenizer import has_tokenizer, tokenizer_vocab_size
from specserve.config.strict import StrictModel
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

__all__ = ["CheckpointFacts", "TensorHeader", "read_checkpoint", "weight_files"]

_SINGLE = "model.safetensors"
_INDEX = "model.safetensors.index.json"
_INTEGER_FORMATS = {"I64": "q", "I32": "i"}


class CheckpointFacts(StrictModel):
    """What a checkpoint folder says of itself.

    `tensors` is None where only the config is known (a recorded model without files); `d2t` and
    `t2d` are the draft's vocabulary maps (target id = draft id + d2t[draft id]; t2d marks the
    target ids that the draft can propose). `tokenizer_vocab_size` is the largest token id plus
    one, None where there is no tokenizer.json. `generation_config` is empty where the file is
    missing. `sha256` covers config.json and the headers.
    """

    path: str
    config: dict[str, Any]
    generation_config: dict[str, Any]
    tensors: dict[str, TensorHeader] | None
    d2t: tuple[int, ...] | None
    t2d: tuple[bool, ...] | None
    has_tokenizer: bool
    tokenizer_vocab_size: int | None
    weight_bytes: int | None
    sha256: str


def read_checkpoint(folder: Path, *, key: str = "model.path") -> CheckpointFacts:
    """What the checkpoint in `folder` says of itself.

    Raises ConfigError, with problems of the configuration key `key`, if a file is missing, can't
    be read or is malformed.
    """
    _demand_folder(folder, key)
    config_bytes = _read_bytes(folder / "config.json", key)
    headers = _read_headers(folder, key)
    tensors = {name: tensor for header in headers for name, tensor in header.tensors.items()}
    digest = hashlib.sha256(config_bytes)
    for header in headers:
        digest.update(header.raw)
    return CheckpointFacts(
        path=str(folder),
        config=_decode_object(config_bytes, folder / "config.json", key),
        generation_config=_read_optional_object(folder / "generation_config.json", key),
        tensors=tensors,
        d2t=_read_integers(headers, "d2t", key),
        t2d=_read_booleans(headers, "t2d", key),
        has_tokenizer=has_tokenizer(folder),
        tokenizer_vocab_size=_read_tokenizer(folder, key),
        weight_bytes=sum(tensor.num_bytes for tensor in tensors.values()),
        sha256=digest.hexdigest(),
    )


def weight_files(folder: Path, *, key: str = "model.path") -> tuple[Path, ...]:
    """The safetensors files that hold the weights: one, or the shards that the index names.

    Raises ConfigError if there are none, or if a shard of the index is missing.
    """
    if (folder / _SINGLE).is_file():
        return (folder / _SINGLE,)
    if not (folder / _INDEX).is_file():
        raise _no_weights(folder, key)
    names = sorted(set(_weight_map(folder, key).values()))
    missing = [name for name in names if not (folder / name).is_file()]
    if missing:
        raise _folder_refusal(
            RuleId.SHARD_MISSING,
            key,
            folder,
            f"the {len(names)} files that {_INDEX} names; missing: {', '.join(missing)}",
            f"download the missing files into {folder}",
        )
    return tuple(folder / name for name in names)


def _read_headers(folder: Path, key: str) -> list[SafetensorsHeader]:
    files = weight_files(folder, key=key)
    headers = []
    for path in files:
        with _named(path, "a whole safetensors file", key):
            headers.append(read_header(path))
    if files[0].name != _SINGLE:
        _check_index(folder, dict(zip((path.name for path in files), headers, strict=True)), key)
    return headers


def _check_index(folder: Path, headers: dict[str, SafetensorsHeader], key: str) -> None:
    stored = {(name, file) for file, header in headers.items() for name in header.tensors}
    indexed = set(_weight_map(folder, key).items())
    if stored != indexed:
        name, file = min(stored ^ indexed)
        fault = "misses" if (name, file) in indexed else "holds beyond the index"
        raise _refusal(
            RuleId.INDEX_DISAGREES,
            key,
            folder / _INDEX,
            f"an index of the files beside it, but {file} {fault} {name!r} "
            f"({len(stored ^ indexed)} such tensors)",
            "download the checkpoint again; its files are of different revisions",
        )


def _weight_map(folder: Path, key: str) -> dict[str, str]:
    path = folder / _INDEX
    weight_map = _decode_object(_read_bytes(path, key), path, key).get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise _broken_file(key, path, "an object with weight_map: tensor -> file", _AGAIN)
    for file in weight_map.values():
        if not isinstance(file, str) or "\0" in file or Path(file).name != file:
            raise _broken_file(key, path, f"an index of files in its folder, not {file!r}", _AGAIN)
    return weight_map


def _read_integers(headers: list[SafetensorsHeader], name: str, key: str) -> tuple[int, ...] | None:
    """The values of a 1-D integer tensor; None if it is absent or of another kind."""
    data = _read_data(headers, name, tuple(_INTEGER_FORMATS), key)
    if data is None:
        return None
    dtype, raw = data
    return tuple(value for (value,) in struct.iter_unpack(f"<{_INTEGER_FORMATS[dtype]}", raw))


def _read_booleans(
    headers: list[SafetensorsHeader], name: str, key: str
) -> tuple[bool, ...] | None:
    """The values of a 1-D bool tensor; None if it is absent or of another kind."""
    data = _read_data(headers, name, ("BOOL",), key)
    return None if data is None else tuple(map(bool, data[1]))


def _read_data(
    headers: list[SafetensorsHeader], name: str, dtypes: tuple[str, ...], key: str
) -> tuple[str, bytes] | None:
    for header in headers:
        tensor = header.tensors.get(name)
        if tensor and tensor.dtype in dtypes and len(tensor.shape) == 1:
            with _named(header.path, f"a file whose tensor {name} can be read", key):
                return tensor.dtype, header.read_data(name)
    return None


def _read_tokenizer(folder: Path, key: str) -> int | None:
    with _named(folder / "tokenizer.json", "a tokenizer of the `tokenizers` library", key):
        return tokenizer_vocab_size(folder)


def _read_optional_object(path: Path, key: str) -> dict[str, Any]:
    return _decode_object(_read_bytes(path, key), path, key) if path.is_file() else {}


def _decode_object(data: bytes, path: Path, key: str) -> dict[str, Any]:
    with _named(path, "a JSON object", key):
        decoded = decode_json(data)
        if not isinstance(decoded, dict):
            raise MalformedFileError(f"JSON of another type ({type(decoded).__name__})")
        return decoded


def _read_bytes(path: Path, key: str) -> bytes:
    with _named(path, "a readable file", key):
        if not path.is_file():  # also: opening a named pipe would wait for ever
            raise MalformedFileError("no such file")
        return path.read_bytes()


_AGAIN = "download the checkpoint again"


@contextmanager
def _named(path: Path, expected: str, key: str) -> Iterator[None]:
    """Turn what goes wrong with one file into a problem that names it."""
    try:
        yield
    except MalformedFileError as error:
        fix = "run `git lfs pull` in that folder" if "git-lfs" in str(error) else _AGAIN
        raise _broken_file(key, path, f"{expected}, found {error}", fix) from error
    except OSError as error:
        reason = error.strerror or str(error)
        fix = f"make {path.name} readable for this user"
        raise _broken_file(key, path, f"{expected}, found none ({reason})", fix) from error


def _demand_folder(folder: Path, key: str) -> None:
    try:
        if folder.is_dir():
            return
        found = "a file" if folder.is_file() else "nothing there"
    except OSError as error:  # a name that is too long, a parent that may not be entered
        found = error.strerror or str(error)
    raise _folder_refusal(
        RuleId.NO_CHECKPOINT_FOLDER,
        key,
        folder,
        f"a folder with config.json and {_SINGLE}, found {found}",
        f"download the model with `hf download ORGANISATION/NAME --local-dir {folder}`, "
        f"or set {key} to the folder where it lies",
    )


def _no_weights(folder: Path, key: str) -> ConfigError:
    pickled = sorted(path.name for path in folder.iterdir() if path.suffix in {".bin", ".pt"})
    if pickled:
        return _folder_refusal(
            RuleId.PICKLED_WEIGHTS,
            key,
            folder,
            f"{_SINGLE}, found {pickled[0]}: pickled weights can run code and are not loaded",
            "take a revision with safetensors, or convert the folder once with transformers "
            "(from_pretrained, then save_pretrained into a new folder)",
        )
    return _folder_refusal(
        RuleId.NO_WEIGHTS,
        key,
        folder,
        f"{_SINGLE} or {_INDEX}, found neither",
        f"download the weights with `hf download ORGANISATION/NAME --local-dir {folder}`",
    )


def _broken_file(key: str, file: Path, expected: str, fix: str) -> ConfigError:
    return _refusal(RuleId.BROKEN_FILE, key, file, expected, fix)


def _refusal(rule: RuleId, key: str, file: Path, expected: str, fix: str) -> ConfigError:
    """A problem of one file, or of one that should be there."""
    expected = f"{file.name} to be {expected}"
    return _folder_refusal(rule, key, file.parent, expected, fix)


def _folder_refusal(rule: RuleId, key: str, folder: Path, expected: str, fix: str) -> ConfigError:
    return ConfigError([Problem(rule=rule, key=key, value=str(folder), expected=expected, fix=fix)])
