"""Phase attention_backend: each kind of pass runs once, small, before anything depends on it."""

from dataclasses import dataclass

import torch
from torch import Tensor

from specserve.errors import EngineError
from specserve.plan import Plan
from specserve.torch_engine.attention import Step, chain_step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.draft import Draft
from specserve.torch_engine.target import Target, TargetOutput

_PROMPT_TOKENS = 8
_DECODE_ROWS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class AttentionProof:
    """Which passes gave finite output of the right shape, on which back-end."""

    backend: str
    passes: tuple[str, ...]


@torch.inference_mode()
def check_attention(
    plan: Plan,
    target: Target,
    draft: Draft | None,
    target_cache: KVCache,
    draft_cache: KVCache | None,
) -> AttentionProof:
    """Run a prefill, a batched decode, and with a draft a verify and two draft passes.

    Writes to the first rows of the caches, whose tokens no later pass sees. Raises EngineError
    naming the pass.
    """
    check = _Check(plan, target, target_cache)
    prompt = check.target_pass("prefill", num_rows=1, num_queries=_PROMPT_TOKENS, length=0)
    num_rows = min(_DECODE_ROWS, target_cache.num_rows)
    check.target_pass("decode", num_rows=num_rows, num_queries=1, length=_PROMPT_TOKENS)
    passes = ["prefill", "decode"]
    if plan.speculation is not None and draft is not None and draft_cache is not None:
        num_queries = plan.speculation.num_draft_tokens
        check.target_pass(
            "verify", num_rows=num_rows, num_queries=num_queries, length=_PROMPT_TOKENS
        )
        _check_draft(check, prompt, draft, draft_cache, plan.speculation.draft.draft_vocab_size)
        passes += ["verify", "draft extend", "draft step"]
    return AttentionProof(backend=plan.attention, passes=tuple(passes))


class _Check:
    """Passes of made-up tokens, judged as they come."""

    def __init__(self, plan: Plan, target: Target, cache: KVCache) -> None:
        self._plan = plan
        self._target = target
        self._cache = cache
        self._device = cache.layers[0].device

    def target_pass(
        self, name: str, *, num_rows: int, num_queries: int, length: int
    ) -> TargetOutput:
        """Every row holds `length` tokens before the pass."""
        tokens = self.tokens(num_rows, num_queries)
        output: TargetOutput = self._target(
            tokens, self.step(num_rows, num_queries, length), self._cache
        )
        logits = self._target.logits(output.hidden)
        expect(name, "logits", logits, (num_rows, num_queries, self._plan.target.vocab_size))
        if self._plan.speculation is not None:
            num_aux = len(self._plan.speculation.draft.aux_layer_inputs)
            width = num_aux * self._plan.target.hidden_size
            expect(name, "features", output.features, (num_rows, num_queries, width))
        return output

    def tokens(self, num_rows: int, num_queries: int) -> Tensor:
        count = torch.arange(num_rows * num_queries, device=self._device)
        return (count % self._plan.target.vocab_size).view(num_rows, num_queries)

    def step(self, num_rows: int, num_queries: int, length: int) -> Step:
        return chain_step(
            torch.full((num_rows,), length, device=self._device),
            first_row=0,
            num_queries=num_queries,
            row_tokens=self._cache.row_tokens,
            kv_tokens=length + num_queries,
            see_all=num_queries == 1,
        )


def _check_draft(
    check: _Check, prompt: TargetOutput, draft: Draft, cache: KVCache, draft_vocab_size: int
) -> None:
    """The prompt's features first, then the draft's own output in their place."""
    if prompt.features is None:
        raise EngineError("prefill: the target captured no features for the draft")
    num_tokens = prompt.features.shape[1]
    tokens, step = check.tokens(1, num_tokens), check.step(1, num_tokens, 0)
    hidden = draft(tokens, draft.fuse(prompt.features), step, cache)
    expect("draft extend", "logits", draft.logits(hidden), (1, num_tokens, draft_vocab_size))
    step = check.step(1, 1, num_tokens)
    hidden = draft(check.tokens(1, 1), hidden[:, -1:], step, cache)
    expect("draft step", "logits", draft.logits(hidden), (1, 1, draft_vocab_size))


def expect(name: str, what: str, tensor: Tensor | None, shape: tuple[int, ...]) -> None:
    """Raises EngineError unless `tensor` has that shape and is finite."""
    if tensor is None:
        raise EngineError(f"{name}: no {what}, expected {list(shape)}")
    if tuple(tensor.shape) != shape:
        raise EngineError(f"{name}: {what} of shape {list(tensor.shape)}, expected {list(shape)}")
    if not bool(tensor.isfinite().all()):
        raise EngineError(f"{name}: {what} that are not finite")
