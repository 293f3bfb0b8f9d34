"""How /v1/chat/completions spells its answer."""

from collections.abc import Sequence

import msgspec

from specserve.engine import GenerationChunk, TokenLogprob
from specserve.server.answer import Output
from specserve.server.logprobs import chat_logprobs
from specserve.server.responses import (
    ChatChoice,
    ChatChunkChoice,
    ChatCompletion,
    ChatCompletionChunk,
    ChatDelta,
    ChatLogprobs,
    ChatMessage,
    SpeculationRecord,
    Usage,
    speculation_record,
)
from specserve.server.tokenizer import Tokenizer


class ChatAnswer:
    """One answer."""

    def __init__(
        self,
        *,
        answer_id: str,
        created: int,
        model: str,
        tokenizer: Tokenizer,
        with_logprobs: bool,
        include_usage: bool,
    ) -> None:
        self._id = answer_id
        self._created = created
        self._model = model
        self._tokenizer = tokenizer
        self._with_logprobs = with_logprobs
        self._usage_of_chunk = None if include_usage else msgspec.UNSET

    def opening(self, choice: int) -> ChatCompletionChunk:
        """The role."""
        delta = ChatDelta(content="", role="assistant")
        return self._chunk([ChatChunkChoice(choice, delta, None, None)])

    def delta(self, choice: int, chunk: GenerationChunk) -> ChatCompletionChunk:
        """New text; at the choice's end also its speculation counters."""
        delta = ChatDelta(content=chunk.text or None)
        logprobs = self._logprobs(chunk.logprobs)
        added = ChatChunkChoice(choice, delta, logprobs, chunk.finish_reason)
        if chunk.finish_reason is None:
            return self._chunk([added])
        return self._chunk([added], speculation_record([chunk.counters]))

    def closing(self, usage: Usage, speculation: SpeculationRecord) -> ChatCompletionChunk:
        """No choices, only totals."""
        return ChatCompletionChunk(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[],
            usage=usage,
            specserve=speculation,
        )

    def whole(
        self, outputs: Sequence[Output], usage: Usage, speculation: SpeculationRecord
    ) -> ChatCompletion:
        """All choices with totals."""
        choices = [
            ChatChoice(
                index,
                ChatMessage(output.text),
                self._logprobs(output.logprobs),
                output.finish_reason,
            )
            for index, output in enumerate(outputs)
        ]
        return ChatCompletion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=choices,
            usage=usage,
            specserve=speculation,
        )

    def _chunk(
        self,
        choices: list[ChatChunkChoice],
        speculation: SpeculationRecord | msgspec.UnsetType = msgspec.UNSET,
    ) -> ChatCompletionChunk:
        return ChatCompletionChunk(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=choices,
            usage=self._usage_of_chunk,
            specserve=speculation,
        )

    def _logprobs(self, logprobs: Sequence[TokenLogprob]) -> ChatLogprobs | None:
        return chat_logprobs(logprobs, self._tokenizer) if self._with_logprobs else None
