import msgspec

from specserve.engine import GenerationChunk, RequestCounters, TokenLogprob
from specserve.server.answer import Output
from specserve.server.chat_answer import ChatAnswer
from specserve.server.responses import make_usage, speculation_record
from tests.server.live import make_tokenizer

COUNTERS = RequestCounters(drafted=3, accepted=1, verify_rounds=1, plain_steps=0, emitted=2)
LOGPROBS = (TokenLogprob(token_id=ord("a"), logprob=-1.0, top=()),)


def make_answer(*, with_logprobs: bool = False, include_usage: bool = False) -> ChatAnswer:
    return ChatAnswer(
        answer_id="chatcmpl-1",
        created=5,
        model="m",
        tokenizer=make_tokenizer(),
        with_logprobs=with_logprobs,
        include_usage=include_usage,
    )


def chunk(text: str = "a", *, last: bool = False) -> GenerationChunk:
    return GenerationChunk(
        request_id="r",
        token_ids=(97,),
        text=text,
        logprobs=LOGPROBS,
        finish_reason="stop" if last else None,
        counters=COUNTERS,
    )


def test_the_role_comes_first_and_once() -> None:
    answer = make_answer()
    opening, delta = answer.opening(0).choices[0].delta, answer.delta(0, chunk()).choices[0].delta

    assert {"role": "assistant", "content": ""} == msgspec.to_builtins(opening)
    assert {"content": "a"} == msgspec.to_builtins(delta)


def test_a_chunk_without_text_has_no_content() -> None:
    delta = make_answer().delta(0, chunk("", last=True)).choices[0].delta

    assert {} == msgspec.to_builtins(delta)


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


def test_the_whole_answer_is_a_message() -> None:
    output = Output(text="a", logprobs=LOGPROBS, finish_reason="stop")
    usage, record = make_usage(1, 2), speculation_record([COUNTERS])
    [plain] = make_answer().whole([output], usage, record).choices
    [detailed] = make_answer(with_logprobs=True).whole([output], usage, record).choices

    assert ("a", "assistant", None) == (plain.message.content, plain.message.role, plain.logprobs)
    assert detailed.logprobs is not None
    assert ["a"] == [entry.token for entry in detailed.logprobs.content]
