import msgspec

from specserve.engine import GenerationChunk, RequestCounters, TokenLogprob
from specserve.server.answer import Output
from specserve.server.completion_answer import CompletionAnswer
from specserve.server.responses import make_usage, speculation_record
from tests.server.live import make_tokenizer

COUNTERS = RequestCounters(drafted=3, accepted=1, verify_rounds=1, plain_steps=0, emitted=2)
LOGPROBS = tuple(TokenLogprob(token_id=ord(each), logprob=-1.0, top=()) for each in "ab")


def make_answer(
    *, echo: str = "", with_logprobs: bool = False, include_usage: bool = False
) -> CompletionAnswer:
    return CompletionAnswer(
        answer_id="cmpl-1",
        created=5,
        model="m",
        tokenizer=make_tokenizer(),
        echoes=[echo],
        with_logprobs=with_logprobs,
        include_usage=include_usage,
    )


def chunk(*, last: bool = False) -> GenerationChunk:
    return GenerationChunk(
        request_id="r",
        token_ids=(97, 98),
        text="ab",
        logprobs=LOGPROBS,
        finish_reason="stop" if last else None,
        counters=COUNTERS,
    )


def test_an_echo_is_streamed_before_the_first_chunk() -> None:
    opening = make_answer(echo="prompt").opening(0)

    assert opening is not None
    assert "prompt" == opening.choices[0].text
    assert None is make_answer().opening(0)


def test_offsets_go_on_over_the_chunks_of_a_stream() -> None:
    answer = make_answer(with_logprobs=True)
    found = [answer.delta(0, chunk()).choices[0].logprobs for _ in range(2)]

    assert [[0, 1], [2, 3]] == [each.text_offset for each in found if each]


def test_only_the_last_chunk_has_the_counters() -> None:
    answer = make_answer()

    assert msgspec.UNSET is answer.delta(0, chunk()).specserve
    assert speculation_record([COUNTERS]) == answer.delta(0, chunk(last=True)).specserve


def test_usage_is_null_in_every_chunk_but_the_closing_one() -> None:
    answer = make_answer(include_usage=True)
    usage = make_usage(1, 2)
    closing = answer.closing(usage, speculation_record([COUNTERS]))

    assert None is answer.delta(0, chunk()).usage
    assert (usage, []) == (closing.usage, closing.choices)
    assert msgspec.UNSET is make_answer().delta(0, chunk()).usage


def test_the_whole_answer_has_echo_text_and_logprobs() -> None:
    output = Output(text="ab", logprobs=LOGPROBS, finish_reason="stop")
    whole = make_answer(echo="p:", with_logprobs=True).whole(
        [output], make_usage(1, 2), speculation_record([COUNTERS])
    )
    [choice] = whole.choices

    assert ("p:ab", "stop") == (choice.text, choice.finish_reason)
    assert choice.logprobs is not None
    assert ["a", "b"] == choice.logprobs.tokens
