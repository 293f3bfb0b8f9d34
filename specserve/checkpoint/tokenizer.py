"""Which tokenizer files a checkpoint has, and how many ids its tokenizer.json gives out."""

from pathlib import Path

import msgspec

from specserve.checkpoint.safetensors_header import MalformedFileError

_FAST = "tokenizer.json"
_SLOW = ("tokenizer.model", "tiktoken.model", "vocab.json")


class _AddedToken(msgspec.Struct):
    id: int


class _Model(msgspec.Struct):
    vocab: dict[str, int] | list[msgspec.Raw]  # a list of (piece, score) for unigram models


class _Tokenizer(msgspec.Struct):
    model: _Model
    added_tokens: list[_AddedToken] = []


def has_tokenizer(folder: Path) -> bool:
    """Whether any of the files lies in `folder` that a tokenizer can be made from."""
    return any((folder / name).is_file() for name in (_FAST, *_SLOW))


def tokenizer_vocab_size(folder: Path) -> int | None:
    """The largest token id plus one; None without a tokenizer.json.

    Raises MalformedFileError if the file is none, OSError if it can't be read.
    """
    path = folder / _FAST
    if not path.is_file():
        return None
    try:
        tokenizer = msgspec.json.decode(path.read_bytes(), type=_Tokenizer)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise MalformedFileError(f"something else ({error})") from error
    vocab = tokenizer.model.vocab
    largest = max(vocab.values(), default=-1) if isinstance(vocab, dict) else len(vocab) - 1
    return 1 + max([largest, *(token.id for token in tokenizer.added_tokens)])
