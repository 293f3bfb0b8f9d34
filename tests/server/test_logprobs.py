import math

from specserve.engine import TokenLogprob
from specserve.server.logprobs import chat_logprobs, completion_logprobs
from tests.server.live import make_tokenizer

TOKENIZER = make_tokenizer()
A, HALF_OF_E_ACUTE = ord("a"), 0xC3


def test_offsets_go_on_from_where_the_chunk_before_ended() -> None:
    entries = [
        TokenLogprob(token_id=257, logprob=-0.5, top=()),
        TokenLogprob(token_id=A, logprob=-0.25, top=((A, -0.25),)),
    ]
    spelt = completion_logprobs(entries, TOKENIZER, offset=10)

    assert ["!!", "a"] == spelt.tokens
    assert [10, 12] == spelt.text_offset
    assert [-0.5, -0.25] == spelt.token_logprobs
    assert [{}, {"a": -0.25}] == spelt.top_logprobs


def test_pieces_of_characters_stay_apart() -> None:
    entry = TokenLogprob(
        token_id=HALF_OF_E_ACUTE, logprob=-1.0, top=((HALF_OF_E_ACUTE, -1.0), (0xC4, -2.0))
    )
    spelt = completion_logprobs([entry], TOKENIZER, offset=0)
    chat = chat_logprobs([entry], TOKENIZER).content[0]

    assert ["bytes:\\xc3"] == spelt.tokens
    assert {"bytes:\\xc3": -1.0, "bytes:\\xc4": -2.0} == spelt.top_logprobs[0]
    assert [0xC3] == chat.bytes
    assert [[0xC3], [0xC4]] == [top.bytes for top in chat.top_logprobs]


def test_minus_infinity_becomes_a_number_that_json_has() -> None:
    entry = TokenLogprob(token_id=A, logprob=-math.inf, top=((A, -math.inf),))

    assert [-9999.0] == completion_logprobs([entry], TOKENIZER, offset=0).token_logprobs
    assert -9999.0 == chat_logprobs([entry], TOKENIZER).content[0].top_logprobs[0].logprob
