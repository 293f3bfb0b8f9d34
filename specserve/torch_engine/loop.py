"""The decoding loop: launches one step's work after the other and settles what comes of them.

`sync` settles what it has just launched; `overlap` settles the launch before, while the device
works on the new one (on a CPU, where both are one, it only comes a step later). The state on the
device advances in the round itself, so both emit the same tokens; what overlap computes past a
request's end is dropped.
"""

import time
from collections import deque
from collections.abc import Iterator
from typing import NamedTuple

from transformers import PreTrainedTokenizerBase

from specserve.config.policy import PolicyConfig
from specserve.engine import (
    EngineStats,
    GenerationChunk,
    GenerationRequest,
    Mode,
    PolicyState,
    TokenLogprob,
)
from specserve.errors import EngineError
from specserve.plan import Plan
from specserve.policy.observation import count_round
from specserve.torch_engine.active import ActiveRequest
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.detokenize import token_decoder
from specserve.torch_engine.device_queue import Handle, open_queue
from specserve.torch_engine.drafter import Drafter
from specserve.torch_engine.features import make_feature_store
from specserve.torch_engine.logprobs import row_logprobs
from specserve.torch_engine.passes import DraftPasses, TargetPasses
from specserve.torch_engine.request_check import check_request
from specserve.torch_engine.round import Decoder, Emitted
from specserve.torch_engine.rows import Rows, usable_row_tokens
from specserve.torch_engine.scheduler import Scheduler
from specserve.torch_engine.steering import Steering
from specserve.torch_engine.step_work import Pass, StepWork
from specserve.torch_engine.totals import Totals


class Loop:
    """Serves requests with one target and at most one draft. For one thread: it has no locks.

    An exception out of `step` is the engine's end: nothing is left but to close it.
    """

    def __init__(
        self,
        *,
        plan: Plan,
        target: TargetPasses,
        draft: DraftPasses | None,
        target_cache: KVCache,
        draft_cache: KVCache | None,
        tokenizer: PreTrainedTokenizerBase,
    ) -> None:
        self._plan = plan
        rows, drafter = _make_rows(plan, target_cache, draft, draft_cache)
        self._totals = Totals(
            accepted_by_position=[0] * (plan.speculation.num_steps if plan.speculation else 0)
        )
        self._steering = Steering(plan.policy, plan.speculation, plan.calibration)
        self._scheduler = Scheduler(
            plan=plan,
            decoder=Decoder(target=target, rows=rows),
            drafter=drafter,
            steering=self._steering,
            totals=self._totals,
            text=token_decoder(tokenizer),
        )
        self._queue = open_queue(own_thread=plan.scheduler.device_thread)
        self._num_ahead = 1 if plan.scheduler.kind == "overlap" else 0
        self._launches: deque[_Launch] = deque()
        self._last_settled = 0.0
        self._aborted: list[GenerationChunk] = []
        self._is_broken = False

    @property
    def has_work(self) -> bool:
        """Whether a step would do anything."""
        return bool(self._scheduler.has_requests or self._launches or self._aborted)

    def submit(self, request: GenerationRequest) -> None:
        """Queue a request. Raises RequestError if it can't be served, ever or (429) now."""
        check_request(
            request,
            vocab_size=self._plan.target.vocab_size,
            context_length=min(self._plan.target.context_length, usable_row_tokens(self._plan)),
            max_kv_tokens=self._plan.scheduler.max_kv_tokens,
        )
        self._scheduler.admission.enqueue(request)

    def abort(self, request_id: str) -> None:
        """End a request wherever it is; the next step says so. Unknown ids are no error."""
        chunk = self._scheduler.abort(request_id)
        if chunk is not None:
            self._aborted.append(chunk)

    def step(self) -> list[GenerationChunk]:
        """Launch the next round and return what has come of the last one."""
        if self._is_broken:
            raise EngineError("an earlier step of this loop has failed: close it")
        self._is_broken = True  # until this step has come through
        chunks, self._aborted = self._aborted, []
        work = self._scheduler.next_work()
        if work is not None:
            self._launches.append(self._launch(work))
        while len(self._launches) > (self._num_ahead if work else 0):
            chunks += self._settle(self._launches.popleft())
        self._is_broken = False
        return chunks

    def stats(self) -> EngineStats:
        """Totals of everything that has been settled."""
        return self._totals.stats(
            admission=self._scheduler.admission,
            running_decodes=self._scheduler.running_decodes,
            total_slots=self._plan.scheduler.max_kv_tokens,
            policy=self._steering.state(),
        )

    def policy_state(self) -> PolicyState:
        """The mode in force and why."""
        return self._steering.state()

    def set_policy(self, policy: PolicyConfig) -> PolicyState:
        """Replace the policy from the next round on. Raises ConfigError for what was not built."""
        return self._steering.replace(policy, self._scheduler.running_decodes)

    def close(self) -> None:
        """End the device thread, if there is one. Safe to call twice."""
        self._queue.close()

    def _launch(self, work: StepWork) -> "_Launch":
        return _Launch(
            serial=work.serial,
            passes=tuple(work.passes),
            mode=self._steering.mode,
            began=time.monotonic(),
            handle=self._queue.submit(work.calls),
        )

    def _settle(self, launch: "_Launch") -> list[GenerationChunk]:
        """Wait for a launch and hand out what its requests got."""
        chunks: list[GenerationChunk] = []
        for done, emitted in zip(launch.passes, launch.handle.result(), strict=True):
            chunks += self._settle_pass(launch, done, emitted)
        now = time.monotonic()
        self._totals.seconds_by_mode[launch.mode] += now - max(self._last_settled, launch.began)
        self._last_settled = now
        return chunks

    def _settle_pass(
        self, launch: "_Launch", done: Pass, emitted: Emitted
    ) -> list[GenerationChunk]:
        chunks: list[GenerationChunk] = []
        accepted: list[int] = []
        runs = emitted.runs()
        for request, run, logprobs in zip(
            done.requests, runs, _logprobs(done, emitted, runs), strict=True
        ):
            if request.has_ended:  # while this pass was under way
                continue
            accepted.append(len(run) - 1)
            self._count(launch, done, request, len(run))
            chunk = request.take(run, logprobs)
            self._totals.count_emitted(launch.mode, len(chunk.token_ids))
            if chunk.finish_reason is not None:
                self._scheduler.release(request)
            chunks.append(chunk)
        if done.depth is not None and accepted:
            counters = count_round(done.depth.num_steps, done.depth.num_draft_tokens - 1, accepted)
            self._totals.count_round(counters)
            self._steering.observe_round(counters)
        return chunks

    def _count(
        self, launch: "_Launch", done: Pass, request: ActiveRequest, num_tokens: int
    ) -> None:
        if done.depth is not None:
            request.bounds.settle(launch.serial, done.depth.num_steps, num_tokens)
            request.count_verify(done.depth.num_draft_tokens - 1, num_tokens - 1)
        elif not done.is_prefill:
            request.count_plain()
            self._totals.plain_steps += 1


class _Launch(NamedTuple):
    """One step's device work under way."""

    serial: int
    passes: tuple[Pass, ...]
    mode: Mode
    began: float
    handle: Handle


def _make_rows(
    plan: Plan, target_cache: KVCache, draft: DraftPasses | None, draft_cache: KVCache | None
) -> tuple[Rows, Drafter | None]:
    """The rows, and the drafter of a plan that speculates. Raises EngineError without a draft."""
    if plan.speculation is None:
        return Rows(target_cache, None, None), None
    if draft is None or draft_cache is None:
        raise EngineError("the plan speculates, but no draft and draft cache were built")
    features = make_feature_store(plan, plan.speculation, target_cache.layers[0].device)
    rows = Rows(target_cache, draft_cache, features)
    return rows, Drafter(
        draft=draft,
        cache=draft_cache,
        features=features,
        rows=rows,
        max_num_steps=plan.speculation.num_steps,
    )


def _logprobs(
    done: Pass, emitted: Emitted, runs: list[list[int]]
) -> Iterator[tuple[TokenLogprob, ...]]:
    """One entry for each request; empty for those that did not ask."""
    num_seen = 0
    for request, run in zip(done.requests, runs, strict=True):
        num_top = request.request.top_logprobs
        if num_top is None:
            yield ()
        else:
            yield row_logprobs(emitted.logprobs(), num_seen, run, num_top)
            num_seen += 1
