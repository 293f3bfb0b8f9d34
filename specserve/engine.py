"""What every engine offers: the request, the chunk, the counters and the Engine protocol.

Words (design §2): *round* = one draft and one verify for the whole batch; *acceptance length* =
tokens emitted per request and verify round, bonus token included; *acceptance rate* =
accepted / drafted.
"""

from collections.abc import AsyncIterator
from dataclasses import dataclass
from enum import StrEnum
from typing import Literal, Protocol

from specserve.config.policy import PolicyConfig

FinishReason = Literal["stop", "length", "abort"]


class Mode(StrEnum):
    """How a round decodes. The policy chooses one per round."""

    SPECULATIVE = "speculative"
    PLAIN = "plain"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sampling:
    """How tokens are chosen. `temperature` 0 is greedy; the other fields then have no effect.

    `top_k` None keeps the whole vocabulary. `seed` fixes the sampled tokens: the same seed and
    prompt give the same tokens whether or not speculation is on and whoever else is in the batch.
    `logit_bias` is added to the raw logits of the named token ids before anything else.
    """

    temperature: float
    top_p: float
    top_k: int | None
    min_p: float
    seed: int
    logit_bias: dict[int, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationRequest:
    """One prompt to continue, already tokenized.

    `top_logprobs` None returns no logprobs; N ≥ 0 returns each emitted token's logprob and the N
    most likely alternatives. `speculation` False decodes this request plainly while others
    speculate. `ignore_eos` generates through the end-of-sequence token.
    """

    request_id: str
    prompt_token_ids: tuple[int, ...]
    max_tokens: int
    sampling: Sampling
    stop: tuple[str, ...]
    stop_token_ids: tuple[int, ...]
    top_logprobs: int | None
    speculation: bool
    ignore_eos: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenLogprob:
    """Natural-log probability of one emitted token under the target's raw distribution."""

    token_id: int
    logprob: float
    top: tuple[tuple[int, float], ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestCounters:
    """Raw speculation counters of one request, so far; they only grow.

    `drafted` proposed tokens verified for this request (root excluded), `accepted` of them agreed
    with the target (also where a stop or the cap then trimmed the run),
    `verify_rounds` rounds in which it was verified, `plain_steps` rounds in which it decoded
    plainly, `emitted` tokens it got (trimmed tokens excluded).
    """

    drafted: int
    accepted: int
    verify_rounds: int
    plain_steps: int
    emitted: int


@dataclass(frozen=True, slots=True, kw_only=True)
class GenerationChunk:
    """What one round added to a request.

    `text` is the newly decodable text: it lags `token_ids` inside a multi-byte character and
    never contains a stop string or anything after it. `logprobs` has one entry per token id when
    the request asked for it, else none. Only the last chunk has a `finish_reason`.
    """

    request_id: str
    token_ids: tuple[int, ...]
    text: str
    logprobs: tuple[TokenLogprob, ...]
    finish_reason: FinishReason | None
    counters: RequestCounters


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicySwitch:
    """A change of depth: from which to which, on what sight, and why.

    `round` counts the policy's decisions since start, `elapsed_seconds` the time.
    """

    from_num_steps: int
    to_num_steps: int
    running_decodes: int
    reason: str
    round: int
    elapsed_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PolicyState:
    """Which mode is on, why, and for how long.

    `since_seconds` is the age of the depth in force. `switches` counts changes of depth since
    start; `last_switch` is the latest of them, None before the first.
    """

    policy: PolicyConfig
    mode: Mode
    num_steps: int
    reason: str
    since_seconds: float
    switches: int
    last_switch: PolicySwitch | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineStats:
    """Totals since start; they never decrease, so callers subtract two snapshots.

    `draft_calls` counts draft forward passes that propose, `draft_upkeep_calls` those that only
    keep the draft's state (prompt chunks; while_off: warm, refill), `verify_calls` target passes
    that verify.
    `accepted_by_position[i]` counts requests-rounds in which draft token i+1 was accepted.
    `running` requests hold KV slots (prefill included), `running_decodes` are in decode. Slots are
    tokens: `total_slots` the KV budget, `free_slots` what no running request has reserved of it.
    """

    drafted: int
    accepted: int
    emitted: int
    verify_rounds: int
    plain_steps: int
    draft_calls: int
    draft_upkeep_calls: int
    verify_calls: int
    prefill_tokens: int
    accepted_by_position: tuple[int, ...]
    seconds_by_mode: dict[str, float]
    emitted_by_mode: dict[str, int]
    running: int
    running_decodes: int
    queued: int
    free_slots: int
    total_slots: int
    policy: PolicyState

    @property
    def acceptance_length(self) -> float | None:
        """Tokens emitted per request and verify round; None before the first verify round."""
        return 1 + self.accepted / self.verify_rounds if self.verify_rounds else None

    @property
    def acceptance_rate(self) -> float | None:
        """Accepted / drafted; None before the first draft."""
        return self.accepted / self.drafted if self.drafted else None


class Engine(Protocol):
    """A built engine. One contract test suite runs on every implementation."""

    def generate(self, request: GenerationRequest) -> AsyncIterator[GenerationChunk]:
        """Yield chunks; the last one, and only the last, has a finish_reason.

        Raises RequestError before the first chunk if the request can't be admitted (prompt longer
        than the context, queue full: status 429), EngineError if the engine dies.
        Closing the iterator early aborts the request and frees its slots.
        """
        ...

    async def abort(self, request_id: str) -> None:
        """Stop a request: its iterator ends with "abort". Unknown ids are no error."""
        ...

    async def stats(self) -> EngineStats:
        """Totals since start, read from the engine itself: an answer proves that it is alive."""
        ...

    async def set_policy(self, policy: PolicyConfig) -> PolicyState:
        """Replace the policy from the next round on. Raises ConfigError outside what was built."""
        ...

    async def close(self) -> None:
        """Free everything. Safe to call twice."""
        ...
