from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer
from transformers import AutoTokenizer

from specserve.testing.constructed_tokenizer import END_ID, save_tokenizer

VOCAB_SIZE = 600


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tokenizer")
    save_tokenizer(folder, VOCAB_SIZE, 128, END_ID)
    (folder / "config.json").write_text('{"model_type": "llama"}')
    return folder


@pytest.fixture(scope="module")
def tokenizer(folder: Path) -> Tokenizer:
    loaded: Tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    return loaded


@given(ids=st.lists(st.integers(END_ID, VOCAB_SIZE - 1)))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_ids_become_text_and_the_same_ids_again(tokenizer: Tokenizer, ids: list[int]) -> None:
    assert ids == tokenizer.encode(tokenizer.decode(ids, skip_special_tokens=False)).ids


@given(text=st.text(st.characters(codec="utf-8")))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text_becomes_ids_and_the_same_text_again(tokenizer: Tokenizer, text: str) -> None:
    assert text == tokenizer.decode(tokenizer.encode(text).ids)


def test_every_id_has_its_own_text(tokenizer: Tokenizer) -> None:
    shown = {tokenizer.decode([id_]) for id_ in range(END_ID + 1, VOCAB_SIZE)}

    assert {f"<{id_}>" for id_ in range(END_ID + 1, VOCAB_SIZE)} == shown
    assert VOCAB_SIZE == tokenizer.get_vocab_size()


def test_numbers_that_are_no_ids_are_bytes(tokenizer: Tokenizer) -> None:
    assert [300, *tokenizer.encode("<9999>").ids, 301] == tokenizer.encode("<300><9999><301>").ids
    assert all(id_ < END_ID for id_ in tokenizer.encode("<9999>").ids)


def test_transformers_loads_it_with_its_end_token_and_template(folder: Path) -> None:
    loaded = AutoTokenizer.from_pretrained(folder)

    text = loaded.apply_chat_template(
        [{"role": "user", "content": "<300>"}], tokenize=False, add_generation_prompt=True
    )
    assert END_ID == loaded.eos_token_id
    assert "user: <300>\nassistant: " == text
    assert "<300><301>" == loaded.decode([300, 301])
