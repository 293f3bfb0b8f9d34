import asyncio
import subprocess
import sys
from pathlib import Path

import pytest
from tokenizers import Tokenizer as Backend
from tokenizers import decoders, models
from transformers import PreTrainedTokenizerFast

from specserve.errors import ConfigError, RequestError
from specserve.server.tokenizer import Tokenizer, load_tokenizer
from specserve.testing.checkpoints import EOS_ID, EOS_TOKEN, byte_tokenizer
from tests.server.live import make_plan, make_tokenizer

TURNS = [{"role": "user", "content": "é"}]


def test_text_round_trips() -> None:
    tokenizer = make_tokenizer()
    text = "naïve \N{GRINNING FACE}!!"

    assert text == tokenizer.decode(asyncio.run(tokenizer.encode(text)))


def test_a_chat_ends_where_the_answer_begins() -> None:
    tokenizer = make_tokenizer()

    assert "user: é\nassistant: " == tokenizer.decode(asyncio.run(tokenizer.encode_chat(TURNS)))


def test_without_a_template_a_chat_is_refused_with_the_way_out() -> None:
    loaded = byte_tokenizer(320)
    loaded.chat_template = None

    with pytest.raises(RequestError, match="no chat template; use /v1/completions") as caught:
        asyncio.run(Tokenizer(loaded).encode_chat(TURNS))

    assert "messages" == caught.value.param


def test_what_the_template_refuses_is_the_clients_error() -> None:
    loaded = byte_tokenizer(320)
    loaded.chat_template = "{{ raise_exception('roles must alternate') }}"

    with pytest.raises(RequestError, match="roles must alternate"):
        asyncio.run(Tokenizer(loaded).encode_chat(TURNS))


def test_the_bytes_of_tokens_join_to_the_text() -> None:
    tokenizer = make_tokenizer()
    ids = asyncio.run(tokenizer.encode("é \N{SNOWMAN}\n!!"))

    assert "é \N{SNOWMAN}\n!!".encode() == b"".join(map(tokenizer.token_bytes, ids))


def test_special_and_unknown_ids_have_bytes_too() -> None:
    tokenizer = make_tokenizer()

    assert EOS_TOKEN.encode() == tokenizer.token_bytes(EOS_ID)
    assert b"<9999>" == tokenizer.token_bytes(9999)


def test_sentencepiece_tokens_have_their_own_spelling() -> None:
    vocab = {"<unk>": 0, "▁the": 1, "<0x0A>": 2}
    backend = Backend(models.BPE(vocab=vocab, merges=[], unk_token="<unk>", byte_fallback=True))
    backend.decoder = decoders.Sequence([decoders.ByteFallback(), decoders.Fuse()])
    loaded = PreTrainedTokenizerFast(  # type: ignore[no-untyped-call]
        tokenizer_object=backend
    )

    assert [b" the", b"\n"] == [Tokenizer(loaded).token_bytes(id_) for id_ in (1, 2)]


def test_truncation_that_a_checkpoint_brings_is_taken_off() -> None:
    loaded = byte_tokenizer(320)
    loaded.backend_tokenizer.enable_truncation(3)
    loaded.backend_tokenizer.enable_padding(length=8)

    assert 5 == len(asyncio.run(Tokenizer(loaded).encode("abcde")))


def test_a_text_far_beyond_the_context_is_known_without_encoding_it() -> None:
    tokenizer = make_tokenizer()

    assert tokenizer.surely_exceeds("a" * 100_000, 512)
    assert not tokenizer.surely_exceeds("a" * 600, 512)


def test_the_folder_of_a_checkpoint_is_loaded(tmp_path: Path) -> None:
    byte_tokenizer(320).save_pretrained(tmp_path)
    target = make_plan().target.model_copy(update={"path": str(tmp_path)})

    assert "abc" == load_tokenizer(target).decode([97, 98, 99])


def test_a_folder_without_tokenizer_is_named(tmp_path: Path) -> None:
    target = make_plan().target.model_copy(update={"path": str(tmp_path)})

    with pytest.raises(ConfigError, match=f"model.path='{tmp_path}': expected a tokenizer"):
        load_tokenizer(target)


def test_the_server_imports_no_torch() -> None:
    """Only loading a tokenizer does, through transformers."""
    code = (
        "import sys, specserve.server.app, specserve.server.run; sys.exit('torch' in sys.modules)"
    )

    assert 0 == subprocess.run([sys.executable, "-c", code], check=False).returncode
