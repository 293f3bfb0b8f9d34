"""What the endpoints answer: OpenAI's objects, with `specserve` as the one field of our own."""

from collections.abc import Sequence
from typing import Literal

import msgspec

from specserve.engine import FinishReason, RequestCounters


class Usage(msgspec.Struct, frozen=True):
    """Counted in token ids; a prompt counts once, however many choices continue it."""

    prompt_tokens: int
    completion_tokens: int
    total_tokens: int


class SpeculationRecord(msgspec.Struct, frozen=True):
    """Raw speculation counters; `acceptance_length` is null if nothing was verified."""

    drafted: int
    accepted: int
    verify_rounds: int
    plain_steps: int
    acceptance_length: float | None


class CompletionLogprobs(msgspec.Struct, frozen=True):
    """Parallel lists, one entry a token. `text_offset` counts characters from the text's start."""

    tokens: list[str]
    token_logprobs: list[float]
    top_logprobs: list[dict[str, float]]
    text_offset: list[int]


class CompletionChoice(msgspec.Struct, frozen=True):
    """One continuation, or in a stream what a chunk adds to it."""

    index: int
    text: str
    logprobs: CompletionLogprobs | None
    finish_reason: FinishReason | None


class Completion(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer, or one chunk of it."""

    id: str
    object: Literal["text_completion"] = "text_completion"
    created: int
    model: str
    choices: list[CompletionChoice]
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET
    specserve: SpeculationRecord | msgspec.UnsetType = msgspec.UNSET


class TopLogprob(msgspec.Struct, frozen=True):
    """An alternative; `bytes` are exact where `token` can't be, inside a character."""

    token: str
    logprob: float
    bytes: list[int]


class ChatTokenLogprob(msgspec.Struct, frozen=True):
    """One emitted token with its likeliest alternatives."""

    token: str
    logprob: float
    bytes: list[int]
    top_logprobs: list[TopLogprob]


class ChatLogprobs(msgspec.Struct, frozen=True):
    """One entry a token."""

    content: list[ChatTokenLogprob]


class ChatMessage(msgspec.Struct, frozen=True):
    """The assistant's turn."""

    content: str
    role: Literal["assistant"] = "assistant"
    refusal: None = None


class ChatChoice(msgspec.Struct, frozen=True):
    """One answer."""

    index: int
    message: ChatMessage
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason | None


class ChatCompletion(msgspec.Struct, frozen=True, kw_only=True):
    """The whole answer."""

    id: str
    object: Literal["chat.completion"] = "chat.completion"
    created: int
    model: str
    choices: list[ChatChoice]
    usage: Usage
    specserve: SpeculationRecord


class ChatDelta(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a chunk adds; the role comes once, first."""

    content: str | None = None
    role: Literal["assistant"] | None = None


class ChatChunkChoice(msgspec.Struct, frozen=True):
    """What a chunk adds to one answer."""

    index: int
    delta: ChatDelta
    logprobs: ChatLogprobs | None
    finish_reason: FinishReason | None


class ChatCompletionChunk(msgspec.Struct, frozen=True, kw_only=True):
    """One chunk of the answer."""

    id: str
    object: Literal["chat.completion.chunk"] = "chat.completion.chunk"
    created: int
    model: str
    choices: list[ChatChunkChoice]
    usage: Usage | msgspec.UnsetType | None = msgspec.UNSET
    specserve: SpeculationRecord | msgspec.UnsetType = msgspec.UNSET


def make_usage(prompt_tokens: int, completion_tokens: int) -> Usage:
    """The sum is theirs, not ours to get wrong."""
    return Usage(prompt_tokens, completion_tokens, prompt_tokens + completion_tokens)


def speculation_record(counters: Sequence[RequestCounters]) -> SpeculationRecord:
    """The counters of all choices together."""
    accepted = sum(each.accepted for each in counters)
    verify_rounds = sum(each.verify_rounds for each in counters)
    return SpeculationRecord(
        drafted=sum(each.drafted for each in counters),
        accepted=accepted,
        verify_rounds=verify_rounds,
        plain_steps=sum(each.plain_steps for each in counters),
        acceptance_length=1 + accepted / verify_rounds if verify_rounds else None,
    )
