import asyncio
from collections.abc import AsyncGenerator, Sequence

import pytest

from specserve.engine import FinishReason, GenerationChunk, RequestCounters
from specserve.errors import EngineError
from specserve.server.answer import Output, answer_events, whole_answer
from specserve.server.generation import ChoiceChunk
from specserve.server.responses import SpeculationRecord, Usage


class Spelling:
    """An answer format that is easy to read."""

    def opening(self, choice: int) -> str | None:
        return f"open {choice}" if choice else None

    def delta(self, choice: int, chunk: GenerationChunk) -> str:
        return f"{choice} {chunk.text}"

    def closing(self, usage: Usage, speculation: SpeculationRecord) -> str:
        return f"{usage.completion_tokens} tokens, {speculation.drafted} drafted"

    def whole(
        self, outputs: Sequence[Output], usage: Usage, speculation: SpeculationRecord
    ) -> tuple[list[str], int, int]:
        return [output.text for output in outputs], usage.completion_tokens, speculation.drafted


def chunk(
    text: str, num_tokens: int, drafted: int, reason: FinishReason | None = None
) -> GenerationChunk:
    return GenerationChunk(
        request_id="r",
        token_ids=tuple(range(num_tokens)),
        text=text,
        logprobs=(),
        finish_reason=reason,
        counters=RequestCounters(
            drafted=drafted, accepted=0, verify_rounds=1, plain_steps=0, emitted=num_tokens
        ),
    )


TWO = [
    ChoiceChunk(0, chunk("a", 4, 3)),
    ChoiceChunk(1, chunk("", 1, 3)),
    ChoiceChunk(1, chunk("é", 1, 6, "stop")),
    ChoiceChunk(0, chunk("b", 4, 9, "length")),
]


async def play(chunks: list[ChoiceChunk]) -> AsyncGenerator[ChoiceChunk, None]:
    for each in chunks:
        yield each


def events(chunks: list[ChoiceChunk], *, include_usage: bool) -> list[bytes]:
    async def main() -> list[bytes]:
        stream = answer_events(
            play(chunks),
            Spelling(),
            num_choices=2,
            num_prompt_tokens=7,
            include_usage=include_usage,
        )
        return [each async for each in stream]

    return asyncio.run(main())


def whole(chunks: list[ChoiceChunk]) -> object:
    return asyncio.run(whole_answer(play(chunks), Spelling(), num_choices=2, num_prompt_tokens=7))


def test_tokens_are_ids_not_chunks_and_the_last_counters_stand() -> None:
    assert (["ab", "é"], 10, 15) == whole(TWO)


def test_a_stream_opens_each_choice_and_skips_chunks_that_say_nothing() -> None:
    """The empty chunk holds half a character: its token counts, its event would be empty."""
    expected = ['"0 a"', '"open 1"', '"1 é"', '"0 b"', '"10 tokens, 15 drafted"', "[DONE]"]

    assert [f"data: {each}\n\n".encode() for each in expected] == events(TWO, include_usage=True)


def test_usage_comes_only_if_asked_for() -> None:
    assert b"drafted" not in b"".join(events(TWO, include_usage=False))


@pytest.mark.parametrize("missing", [TWO[:1], TWO[:3]])
def test_an_unfinished_choice_is_no_answer(missing: list[ChoiceChunk]) -> None:
    with pytest.raises(EngineError, match="ended without"):
        whole(missing)
