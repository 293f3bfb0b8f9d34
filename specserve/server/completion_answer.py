"""How /v1/completions spells its answer."""

from collections.abc import Sequence

import msgspec

from specserve.engine import GenerationChunk, TokenLogprob
from specserve.server.answer import Output
from specserve.server.logprobs import completion_logprobs
from specserve.server.responses import (
    Completion,
    CompletionChoice,
    CompletionLogprobs,
    SpeculationRecord,
    Usage,
    speculation_record,
)
from specserve.server.tokenizer import Tokenizer


class CompletionAnswer:
    """One answer. `echoes` are put before each choice's text; empty if not asked for."""

    def __init__(
        self,
        *,
        answer_id: str,
        created: int,
        model: str,
        tokenizer: Tokenizer,
        echoes: Sequence[str],
        with_logprobs: bool,
        include_usage: bool,
    ) -> None:
        self._id = answer_id
        self._created = created
        self._model = model
        self._tokenizer = tokenizer
        self._echoes = echoes
        self._with_logprobs = with_logprobs
        self._usage_of_chunk = None if include_usage else msgspec.UNSET
        self._offsets = [0] * len(echoes)

    def opening(self, choice: int) -> Completion | None:
        """The prompt, if it is to be echoed."""
        if not self._echoes[choice]:
            return None
        return self._chunk([CompletionChoice(choice, self._echoes[choice], None, None)])

    def delta(self, choice: int, chunk: GenerationChunk) -> Completion:
        """New text; at the choice's end also its speculation counters."""
        logprobs = self._logprobs(choice, chunk.logprobs)
        added = CompletionChoice(choice, chunk.text, logprobs, chunk.finish_reason)
        if chunk.finish_reason is None:
            return self._chunk([added])
        return self._chunk([added], speculation_record([chunk.counters]))

    def closing(self, usage: Usage, speculation: SpeculationRecord) -> Completion:
        """No choices, only totals."""
        return Completion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=[],
            usage=usage,
            specserve=speculation,
        )

    def whole(
        self, outputs: Sequence[Output], usage: Usage, speculation: SpeculationRecord
    ) -> Completion:
        """All choices with totals."""
        choices = [
            CompletionChoice(
                index,
                self._echoes[index] + output.text,
                self._logprobs(index, output.logprobs),
                output.finish_reason,
            )
            for index, output in enumerate(outputs)
        ]
        return Completion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=choices,
            usage=usage,
            specserve=speculation,
        )

    def _chunk(
        self,
        choices: list[CompletionChoice],
        speculation: SpeculationRecord | msgspec.UnsetType = msgspec.UNSET,
    ) -> Completion:
        return Completion(
            id=self._id,
            created=self._created,
            model=self._model,
            choices=choices,
            usage=self._usage_of_chunk,
            specserve=speculation,
        )

    def _logprobs(self, choice: int, logprobs: Sequence[TokenLogprob]) -> CompletionLogprobs | None:
        if not self._with_logprobs:
            return None
        spelt = completion_logprobs(logprobs, self._tokenizer, offset=self._offsets[choice])
        self._offsets[choice] += sum(map(len, spelt.tokens))
        return spelt
