"""Chunks of an answer's choices -> the whole answer, or its stream of events."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import aclosing
from dataclasses import dataclass, field
from typing import Protocol

from specserve.engine import FinishReason, GenerationChunk, RequestCounters, TokenLogprob
from specserve.errors import EngineError
from specserve.server.generation import ChoiceChunk
from specserve.server.responses import SpeculationRecord, Usage, make_usage, speculation_record
from specserve.server.stream import DONE, event


@dataclass(frozen=True, slots=True, kw_only=True)
class Output:
    """One finished choice."""

    text: str
    logprobs: tuple[TokenLogprob, ...]
    finish_reason: FinishReason


class AnswerFormat(Protocol):
    """How an endpoint spells its answer; what it returns is encoded as JSON."""

    def opening(self, choice: int) -> object | None:
        """What a stream says of a choice before its first chunk, if anything."""
        ...

    def delta(self, choice: int, chunk: GenerationChunk) -> object:
        """What a chunk adds, in a stream. Chunks of a choice come in order."""
        ...

    def closing(self, usage: Usage, speculation: SpeculationRecord) -> object:
        """The last event of a stream whose client asked for usage."""
        ...

    def whole(
        self, outputs: Sequence[Output], usage: Usage, speculation: SpeculationRecord
    ) -> object:
        """The answer in one piece."""
        ...


@dataclass(slots=True)
class _Progress:
    """One choice so far. Tokens are counted by their ids: a chunk holds any number of them."""

    text: list[str] = field(default_factory=list)
    logprobs: list[TokenLogprob] = field(default_factory=list)
    num_tokens: int = 0
    last: GenerationChunk | None = None

    def add(self, chunk: GenerationChunk) -> None:
        self.text.append(chunk.text)
        self.logprobs.extend(chunk.logprobs)
        self.num_tokens += len(chunk.token_ids)
        self.last = chunk

    @property
    def counters(self) -> RequestCounters:
        return self._last_chunk().counters

    def output(self) -> Output:
        reason = self._last_chunk().finish_reason
        if reason is None:
            raise EngineError("a choice ended without a finish reason")
        return Output(text="".join(self.text), logprobs=tuple(self.logprobs), finish_reason=reason)

    def _last_chunk(self) -> GenerationChunk:
        if self.last is None:
            raise EngineError("a choice ended without a chunk")
        return self.last


async def whole_answer(
    chunks: AsyncGenerator[ChoiceChunk, None],
    answer: AnswerFormat,
    *,
    num_choices: int,
    num_prompt_tokens: int,
) -> object:
    """The answer once every choice has finished."""
    choices = [_Progress() for _ in range(num_choices)]
    async with aclosing(chunks):
        async for choice, chunk in chunks:
            choices[choice].add(chunk)
    return answer.whole(
        [choice.output() for choice in choices],
        *_totals(choices, num_prompt_tokens),
    )


async def answer_events(
    chunks: AsyncGenerator[ChoiceChunk, None],
    answer: AnswerFormat,
    *,
    num_choices: int,
    num_prompt_tokens: int,
    include_usage: bool,
) -> AsyncGenerator[bytes, None]:
    """Server-sent events, the first of them once there is a first chunk."""
    choices = [_Progress() for _ in range(num_choices)]
    async with aclosing(chunks):
        async for choice, chunk in chunks:
            if choices[choice].last is None and (opening := answer.opening(choice)) is not None:
                yield event(opening)
            choices[choice].add(chunk)
            if chunk.text or chunk.logprobs or chunk.finish_reason:
                yield event(answer.delta(choice, chunk))
    if include_usage:
        yield event(answer.closing(*_totals(choices, num_prompt_tokens)))
    yield DONE


def _totals(
    choices: Sequence[_Progress], num_prompt_tokens: int
) -> tuple[Usage, SpeculationRecord]:
    usage = make_usage(num_prompt_tokens, sum(choice.num_tokens for choice in choices))
    return usage, speculation_record([choice.counters for choice in choices])
