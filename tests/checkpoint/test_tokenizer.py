import json
from pathlib import Path

import pytest

from specserve.checkpoint.safetensors_header import MalformedFileError
from specserve.checkpoint.tokenizer import has_tokenizer, tokenizer_vocab_size


def write(folder: Path, model: object, added: object = ()) -> None:
    (folder / "tokenizer.json").write_text(json.dumps({"model": model, "added_tokens": added}))


@pytest.mark.parametrize(
    ("model", "added", "size"),
    [
        ({"vocab": {"a": 0, "b": 7}}, [], 8),
        ({"vocab": {"a": 0}}, [{"id": 11, "content": "<eos>"}], 12),
        ({"vocab": [["a", -1.5], ["b", -2.5]], "type": "Unigram"}, [], 2),
        ({"vocab": {}}, [], 0),
    ],
)
def test_the_size_is_the_largest_id_plus_one(
    tmp_path: Path, model: object, added: object, size: int
) -> None:
    write(tmp_path, model, added)

    assert size == tokenizer_vocab_size(tmp_path)


def test_without_tokenizer_json_the_size_is_unknown(tmp_path: Path) -> None:
    (tmp_path / "tokenizer.model").write_bytes(b"sentencepiece")

    assert tokenizer_vocab_size(tmp_path) is None
    assert has_tokenizer(tmp_path)


def test_a_folder_without_any_of_the_files_has_no_tokenizer(tmp_path: Path) -> None:
    assert not has_tokenizer(tmp_path)


@pytest.mark.parametrize("model", [None, {"vocab": {"a": "b"}}, {"vocab": 3}])
def test_another_json_is_refused(tmp_path: Path, model: object) -> None:
    write(tmp_path, model)

    with pytest.raises(MalformedFileError):
        tokenizer_vocab_size(tmp_path)
