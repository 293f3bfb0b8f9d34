import pytest
from hypothesis import given
from hypothesis import strategies as st
from tokenizers import Tokenizer, decoders, models

from specserve.testing.checkpoints import EOS_ID, byte_tokenizer
from specserve.torch_engine.detokenize import TextStream, TokenDecoder, token_decoder

BYTES = token_decoder(byte_tokenizer(512))


def streamed(decoder: TokenDecoder, prompt: list[int], ids: list[int], sizes: list[int]) -> str:
    stream = TextStream(decoder, prompt)
    text, rest = "", ids
    for size in sizes:
        text += stream.add(rest[:size])
        rest = rest[size:]
    return text + stream.add(rest) + stream.flush()


def test_a_character_is_shown_when_its_last_byte_is_there() -> None:
    stream = TextStream(BYTES, [])

    assert ["", "", "", "🙂"] == [stream.add([byte]) for byte in "🙂".encode()]


def test_a_character_that_never_ends_is_shown_as_a_replacement() -> None:
    stream = TextStream(BYTES, [])

    assert "a" == stream.add(list(b"a\xe2\x82"))
    assert "�" == stream.flush()


def test_special_tokens_have_no_text() -> None:
    assert "ab" == TextStream(BYTES, []).add([ord("a"), EOS_ID, ord("b")])


def test_a_character_that_the_prompt_began_is_finished() -> None:
    prompt, rest = list("é".encode()[:1]), list("é".encode()[1:])

    assert "é" == TextStream(BYTES, prompt).add(rest)


@given(
    prompt=st.lists(st.integers(0, 511), max_size=40),
    text=st.text(max_size=30).map(lambda text: text * 5),
    sizes=st.lists(st.integers(1, 9), max_size=80),
)
def test_pieces_join_to_the_text_however_they_are_cut(
    prompt: list[int], text: str, sizes: list[int]
) -> None:
    prompt = [*prompt, ord("x")]

    assert text == streamed(BYTES, prompt, list(text.encode()), sizes)


@given(
    data=st.binary(max_size=40).map(lambda data: data * 5),
    sizes=st.lists(st.integers(1, 9), max_size=100),
)
def test_bytes_that_are_no_text_come_out_as_the_whole_decodes(
    data: bytes, sizes: list[int]
) -> None:
    assert BYTES.decode(list(data)) == streamed(BYTES, [], list(data), sizes)


@pytest.mark.parametrize("size", [1, 3, 100])
def test_leading_spaces_survive_where_the_decoder_strips_the_first(size: int) -> None:
    """In a Metaspace vocabulary the first token's space is dropped: only in the prompt, here."""
    vocab = {"<unk>": 0, "▁one": 1, "▁two": 2, "▁three": 3}
    tokenizer = Tokenizer(models.WordLevel(vocab, unk_token="<unk>"))
    tokenizer.decoder = decoders.Metaspace()
    ids = [2, 3, 1] * 60

    assert " two three one" * 60 == streamed(tokenizer, [1], ids, [size] * 180)


def test_the_window_stays_bounded() -> None:
    """A piece costs the same behind a long output: the decoder never sees many ids."""
    longest = 0

    class Watching:
        def decode(self, ids: list[int], skip_special_tokens: bool = True) -> str:
            nonlocal longest
            longest = max(longest, len(ids))
            return BYTES.decode(ids)

    streamed(Watching(), [], [0x80] * 500 + [ord("a")] * 500, [1] * 1000)

    assert 70 >= longest
