"""A running request as the host sees it: what it has emitted, as tokens and as text."""

from collections.abc import Sequence, Set

from specserve.engine import (
    FinishReason,
    GenerationChunk,
    GenerationRequest,
    RequestCounters,
    TokenLogprob,
)
from specserve.torch_engine.bounds import RowBounds
from specserve.torch_engine.detokenize import TextStream, TokenDecoder
from specserve.torch_engine.stop import Ending, trim_run
from specserve.torch_engine.stop_strings import StopStrings


class Output:
    """Turns runs of tokens into what the client gets of them."""

    def __init__(
        self, request: GenerationRequest, eos_ids: Set[int], decoder: TokenDecoder
    ) -> None:
        self._stop_ids = frozenset(request.stop_token_ids) | (
            frozenset() if request.ignore_eos else eos_ids
        )
        self._max_tokens = request.max_tokens
        self._text = TextStream(decoder, request.prompt_token_ids)
        self._stops = StopStrings(request.stop) if request.stop else None
        self.num_emitted = 0

    def add(self, run: Sequence[int]) -> tuple[int, str, Ending | None]:
        """How many of the run's tokens are kept, the text to show, and why it ends, if it does."""
        kept, ending = trim_run(
            run,
            num_emitted=self.num_emitted,
            stop_ids=self._stop_ids,
            max_tokens=self._max_tokens,
        )
        shown = run[: kept - 1] if ending == "stop" else run[:kept]
        if self._stops is None:
            text = self._text.add(shown)
            self.num_emitted += kept
            return kept, text + self._text.flush() if ending else text, ending
        return self._add_watched(self._stops, shown, kept, ending)

    def _add_watched(
        self, stops: StopStrings, shown: Sequence[int], kept: int, ending: Ending | None
    ) -> tuple[int, str, Ending | None]:
        """Token by token: a stop string ends the run at the token that completes it."""
        text = ""
        for count, token in enumerate(shown, start=1):
            cut = stops.feed(self._text.add([token]))
            text += cut.text
            if cut.stopped:
                self.num_emitted += count
                return count, text, "stop"
        self.num_emitted += kept
        if ending is None:
            return kept, text, None
        cut = stops.feed(self._text.flush())
        return kept, text + cut.text + stops.flush(), "stop" if cut.stopped else ending


class ActiveRequest:
    """A request that holds a row, with its counters. The loop is its only owner."""

    def __init__(
        self, request: GenerationRequest, output: Output, bounds: RowBounds, *, speculates: bool
    ) -> None:
        self.request = request
        self.bounds = bounds
        self.speculates = speculates
        self.has_ended = False
        self._output = output
        self._drafted = 0
        self._accepted = 0
        self._verify_rounds = 0
        self._plain_steps = 0

    @property
    def counters(self) -> RequestCounters:
        """Its share of the engine's totals."""
        return RequestCounters(
            drafted=self._drafted,
            accepted=self._accepted,
            verify_rounds=self._verify_rounds,
            plain_steps=self._plain_steps,
            emitted=self._output.num_emitted,
        )

    def count_verify(self, drafted: int, accepted: int) -> None:
        """Also where a stop or the cap cuts the accepted run: this is what the draft was worth."""
        self._drafted += drafted
        self._accepted += accepted
        self._verify_rounds += 1

    def count_plain(self) -> None:
        """One round without a draft."""
        self._plain_steps += 1

    def take(self, run: Sequence[int], logprobs: Sequence[TokenLogprob]) -> GenerationChunk:
        """The chunk for a run of new tokens; after its finish reason the request has ended."""
        kept, text, ending = self._output.add(run)
        self.has_ended = ending is not None
        return self._chunk(tuple(run[:kept]), text, tuple(logprobs[:kept]), ending)

    def abort(self) -> GenerationChunk:
        """The last chunk of a request that was given up."""
        self.has_ended = True
        return self._chunk((), "", (), "abort")

    def _chunk(
        self,
        token_ids: tuple[int, ...],
        text: str,
        logprobs: tuple[TokenLogprob, ...],
        finish_reason: FinishReason | None,
    ) -> GenerationChunk:
        return GenerationChunk(
            request_id=self.request.request_id,
            token_ids=token_ids,
            text=text,
            logprobs=logprobs,
            finish_reason=finish_reason,
            counters=self.counters,
        )


def aborted_chunk(request: GenerationRequest) -> GenerationChunk:
    """The only chunk of a request that was given up before it emitted anything."""
    return GenerationChunk(
        request_id=request.request_id,
        token_ids=(),
        text="",
        logprobs=(),
        finish_reason="abort",
        counters=RequestCounters(drafted=0, accepted=0, verify_rounds=0, plain_steps=0, emitted=0),
    )
