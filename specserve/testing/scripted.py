"""An engine without a model: it plays back given tokens, with real counters, delays and failures.

    engine = ScriptedEngine(play_back([5, 6, 7], [8]), decode=tokenizer.decode)

Each run of a script is what one verify round emits. A request that decodes plainly gets the same
tokens, one a step, so that speculation never changes what a client sees.
"""

import asyncio
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from dataclasses import dataclass, field

from specserve.config.policy import AlwaysPolicy, PolicyConfig
from specserve.engine import (
    EngineStats,
    FinishReason,
    GenerationChunk,
    GenerationRequest,
    Mode,
    PolicyState,
    RequestCounters,
)
from specserve.errors import EngineError
from specserve.policy.observation import count_round
from specserve.testing.script import Script, made_up_logprob, visible_text
from specserve.testing.scripted_policy import ScriptedPolicy
from specserve.testing.slots import Slots


@dataclass(slots=True, kw_only=True)
class _Play:
    """One request's progress."""

    request: GenerationRequest
    stopped: asyncio.Event = field(default_factory=asyncio.Event)
    pending: list[int] = field(default_factory=list)
    token_ids: list[int] = field(default_factory=list)
    num_shown: int = 0
    counts: Counter[str] = field(default_factory=Counter)


class ScriptedEngine:
    """Implements `specserve.engine.Engine`, inside one event loop.

    A prefill lasts `prefill_seconds`, a round `round_seconds`. `die` breaks the engine as a killed
    worker would; `aborted` lists the requests that ended early, `closed` says whether close ran.
    """

    def __init__(
        self,
        script: Script,
        *,
        decode: Callable[[Sequence[int]], str],
        num_steps: int = 3,
        slots: int = 8,
        max_queued: int = 8,
        eos_token_ids: Sequence[int] = (),
        policy: PolicyConfig | None = None,
        prefill_seconds: float = 0.0,
        round_seconds: float = 0.0,
    ) -> None:
        self._script = script
        self._decode = decode
        self._num_steps = num_steps
        self._slots = Slots(total=slots, max_queued=max_queued)
        self._eos_token_ids = frozenset(eos_token_ids)
        self._policy = ScriptedPolicy(policy or AlwaysPolicy(kind="always"), num_steps)
        self._prefill_seconds = prefill_seconds
        self._round_seconds = round_seconds
        self._num_decoding = 0
        self._totals: Counter[str] = Counter()
        self._accepted_by_position: Counter[int] = Counter()
        self._seconds_by_mode: dict[str, float] = dict.fromkeys(Mode, 0.0)
        self._emitted_by_mode: dict[str, int] = dict.fromkeys(Mode, 0)
        self._plays: dict[str, _Play] = {}
        self._cause_of_death: str | None = None
        self.aborted: list[str] = []
        self.closed = False

    async def generate(self, request: GenerationRequest) -> AsyncIterator[GenerationChunk]:
        """Play the script to `request`."""
        self._check_alive()
        await self._slots.take()
        play = self._plays[request.request_id] = _Play(request=request)
        finished = False
        try:
            runs = self._script(request)
            await self._pass_time(play, self._prefill_seconds)
            self._totals["prefill_tokens"] += len(request.prompt_token_ids)
            self._num_decoding += 1
            try:
                while not finished:
                    chunk = await self._round(play, runs)
                    finished = chunk.finish_reason is not None
                    yield chunk
            finally:
                self._num_decoding -= 1
        finally:
            if not finished or play.stopped.is_set():
                self.aborted.append(request.request_id)
            del self._plays[request.request_id]
            self._slots.give_back()

    async def abort(self, request_id: str) -> None:
        """End the request's iterator with "abort"."""
        if request_id in self._plays:
            self._plays[request_id].stopped.set()

    async def stats(self) -> EngineStats:
        """Totals since start. Raises EngineError once dead."""
        self._check_alive()
        totals = self._totals
        return EngineStats(
            drafted=totals["drafted"],
            accepted=totals["accepted"],
            emitted=totals["emitted"],
            verify_rounds=totals["verify_rounds"],
            plain_steps=totals["plain_steps"],
            draft_calls=totals["drafted"],
            draft_upkeep_calls=0,
            verify_calls=totals["verify_rounds"],
            prefill_tokens=totals["prefill_tokens"],
            accepted_by_position=tuple(
                self._accepted_by_position[position] for position in range(self._num_steps)
            ),
            seconds_by_mode=dict(self._seconds_by_mode),
            emitted_by_mode=dict(self._emitted_by_mode),
            running=self._slots.num_taken,
            running_decodes=self._num_decoding,
            queued=self._slots.num_queued,
            free_slots=self._slots.total - self._slots.num_taken,
            total_slots=self._slots.total,
            policy=self._policy.state(),
        )

    async def set_policy(self, policy: PolicyConfig) -> PolicyState:
        """Replace the policy from the next round on. Raises ConfigError beyond `num_steps`."""
        self._check_alive()
        return self._policy.replace(policy, self._num_decoding)

    async def close(self) -> None:
        """End every request with "abort"."""
        self.closed = True
        for play in self._plays.values():
            play.stopped.set()

    def die(self, reason: str) -> None:
        """From now on every request and every question is answered with EngineError."""
        self._cause_of_death = reason
        for play in self._plays.values():
            play.stopped.set()
        self._slots.fail(reason)

    async def _pass_time(self, play: _Play, seconds: float) -> None:
        try:
            async with asyncio.timeout(seconds):
                await play.stopped.wait()
        except TimeoutError:
            pass  # nobody stopped it meanwhile
        self._check_alive()

    async def _round(self, play: _Play, runs: Iterator[Sequence[int]]) -> GenerationChunk:
        """One verify round or one plain step of this request."""
        self._policy.follow(self._num_decoding)
        mode, began = self._policy.mode, time.monotonic()
        num_steps = self._policy.num_steps if play.request.speculation else 0
        await self._pass_time(play, self._round_seconds)
        self._seconds_by_mode[mode] += time.monotonic() - began
        if play.stopped.is_set():
            return self._chunk(play, (), "abort")
        play.pending = play.pending or self._next_run(runs)
        run, play.pending = tuple(play.pending[: num_steps + 1]), play.pending[num_steps + 1 :]
        kept, reason = self._trim(play, run)
        play.token_ids.extend(kept)
        if run:
            self._count(play, mode, num_steps, num_accepted=len(run) - 1, num_kept=len(kept))
        return self._chunk(play, kept, reason)

    def _next_run(self, runs: Iterator[Sequence[int]]) -> list[int]:
        run = list(next(runs, ()))
        if len(run) > self._num_steps + 1:
            raise EngineError(f"{self._num_steps} steps cannot yield a run of {len(run)}")
        return run

    def _trim(
        self, play: _Play, run: tuple[int, ...]
    ) -> tuple[tuple[int, ...], FinishReason | None]:
        """The tokens of `run` that the request gets, and why it ends with them."""
        request = play.request
        if not run:
            return (), "stop"
        stop_ids = {*request.stop_token_ids, *(() if request.ignore_eos else self._eos_token_ids)}
        room = request.max_tokens - len(play.token_ids)
        for num_kept, token_id in enumerate(run[:room], start=1):
            text = self._decode([*play.token_ids, *run[:num_kept]])
            if token_id in stop_ids or any(stop in text for stop in request.stop):
                return run[:num_kept], "stop"
        return run[:room], "length" if len(run) >= room else None

    def _count(
        self, play: _Play, mode: Mode, num_steps: int, *, num_accepted: int, num_kept: int
    ) -> None:
        counts = {"emitted": num_kept}
        if num_steps:
            counts |= {"drafted": num_steps, "accepted": num_accepted, "verify_rounds": 1}
            self._accepted_by_position.update(range(num_accepted))
            self._policy.observe(count_round(num_steps, num_steps, [num_accepted]))
        else:
            counts["plain_steps"] = 1
        play.counts.update(counts)
        self._totals.update(counts)
        self._emitted_by_mode[mode] += num_kept

    def _chunk(
        self, play: _Play, token_ids: tuple[int, ...], reason: FinishReason | None
    ) -> GenerationChunk:
        request, shown_ids = play.request, play.token_ids
        if reason == "stop" and shown_ids and shown_ids[-1] in self._eos_token_ids:
            shown_ids = shown_ids[:-1]
        text = visible_text(self._decode(shown_ids), request.stop, finished=reason is not None)
        added, play.num_shown = text[play.num_shown :], len(text)
        num_top = request.top_logprobs
        return GenerationChunk(
            request_id=request.request_id,
            token_ids=token_ids,
            text=added,
            logprobs=()
            if num_top is None
            else tuple(made_up_logprob(token_id, num_top) for token_id in token_ids),
            finish_reason=reason,
            counters=RequestCounters(
                drafted=play.counts["drafted"],
                accepted=play.counts["accepted"],
                verify_rounds=play.counts["verify_rounds"],
                plain_steps=play.counts["plain_steps"],
                emitted=play.counts["emitted"],
            ),
        )

    def _check_alive(self) -> None:
        if self._cause_of_death is not None:
            raise EngineError(self._cause_of_death)
