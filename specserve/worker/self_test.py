"""Phase self_test: one short greedy generation in each mode, through the real request path."""

import math
from dataclasses import dataclass

from specserve.config.policy import AlwaysPolicy, OffPolicy
from specserve.engine import (
    Engine,
    EngineStats,
    GenerationChunk,
    GenerationRequest,
    Mode,
    Sampling,
    TokenLogprob,
)
from specserve.errors import EngineError
from specserve.plan import Plan

_PROMPT_TOKENS = 8

# Two modes do the same arithmetic in another order. Where the best two tokens are closer than
# that rounding (in nats), either is right, and the outputs may part.
_TIE_NATS = {"float32": 1e-3, "float16": 0.02, "bfloat16": 0.15}


@dataclass(frozen=True, slots=True, kw_only=True)
class ModeProof:
    """What one mode put out, and by how much the engine's own counters moved for it."""

    mode: Mode
    token_ids: tuple[int, ...]
    logprobs: tuple[TokenLogprob, ...]
    drafted: int
    accepted: int
    verify_rounds: int
    plain_steps: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SelfTest:
    """Every mode ran and agreed. `parted_at` is the index of a tie after which outputs differ."""

    proofs: tuple[ModeProof, ...]
    parted_at: int | None


async def self_test(engine: Engine, plan: Plan) -> SelfTest:
    """Return the proof, with the planned policy in force again; raises EngineError without one."""
    plain = await _run_mode(engine, plan, Mode.PLAIN)
    if plan.speculation is None:
        result = SelfTest(proofs=(plain,), parted_at=None)
    else:
        speculative = await _run_mode(engine, plan, Mode.SPECULATIVE)
        parted_at = where_parted(plain, speculative, _TIE_NATS[plan.target.dtype])
        result = SelfTest(proofs=(plain, speculative), parted_at=parted_at)
    await engine.set_policy(plan.policy)
    return result


async def _run_mode(engine: Engine, plan: Plan, mode: Mode) -> ModeProof:
    speculative = mode is Mode.SPECULATIVE
    await engine.set_policy(AlwaysPolicy(kind="always") if speculative else OffPolicy(kind="off"))
    before = await engine.stats()
    request = _request(plan, mode)
    chunks = [chunk async for chunk in engine.generate(request)]
    proof = _proof(mode, chunks, before, await engine.stats())
    problems = [*_output_problems(proof, request, plan), *_counter_problems(proof)]
    if problems:
        raise EngineError(f"{mode} mode: {'; '.join(problems)}")
    return proof


def _request(plan: Plan, mode: Mode) -> GenerationRequest:
    target = plan.target
    prompt_tokens = min(_PROMPT_TOKENS, target.context_length // 2)
    return GenerationRequest(
        request_id=f"self_test_{mode}",
        prompt_token_ids=tuple(1 + i % (target.vocab_size - 1) for i in range(prompt_tokens)),
        max_tokens=min(plan.self_test_tokens, target.context_length - prompt_tokens),
        sampling=Sampling(temperature=0.0, top_p=1.0, top_k=None, min_p=0.0, seed=0, logit_bias={}),
        stop=(),
        stop_token_ids=(),
        top_logprobs=2,
        speculation=True,
        ignore_eos=True,
    )


def _proof(
    mode: Mode, chunks: list[GenerationChunk], before: EngineStats, after: EngineStats
) -> ModeProof:
    return ModeProof(
        mode=mode,
        token_ids=tuple(token for chunk in chunks for token in chunk.token_ids),
        logprobs=tuple(logprob for chunk in chunks for logprob in chunk.logprobs),
        drafted=after.drafted - before.drafted,
        accepted=after.accepted - before.accepted,
        verify_rounds=after.verify_rounds - before.verify_rounds,
        plain_steps=after.plain_steps - before.plain_steps,
    )


def _output_problems(proof: ModeProof, request: GenerationRequest, plan: Plan) -> list[str]:
    problems = []
    if len(proof.token_ids) != request.max_tokens:
        problems.append(f"{len(proof.token_ids)} tokens instead of {request.max_tokens}")
    if len(proof.logprobs) != len(proof.token_ids):
        problems.append(f"{len(proof.logprobs)} logprobs for {len(proof.token_ids)} tokens")
    if not all(math.isfinite(logprob.logprob) for logprob in proof.logprobs):
        problems.append("logprobs that are not finite")
    strange = [token for token in proof.token_ids if not 0 <= token < plan.target.vocab_size]
    if strange:
        problems.append(f"token ids outside the vocabulary: {strange}")
    return problems


def _counter_problems(proof: ModeProof) -> list[str]:
    """The engine's counters must show the mode that was asked for, and no other."""
    found = (
        f"drafted {proof.drafted}, verify_rounds {proof.verify_rounds}, "
        f"plain_steps {proof.plain_steps}"
    )
    match proof.mode:
        case Mode.SPECULATIVE if proof.drafted == 0 or proof.verify_rounds == 0:
            return [f"nothing was drafted or verified ({found})"]
        case Mode.PLAIN if proof.plain_steps == 0 or proof.drafted > 0:
            return [f"it did not decode plainly ({found})"]
    return []


def where_parted(plain: ModeProof, speculative: ModeProof, tie_nats: float) -> int | None:
    """Where the outputs part at a tie, None if nowhere; raises EngineError if they just differ."""
    pairs = zip(plain.token_ids, speculative.token_ids, strict=True)
    parted_at = next((i for i, (one, other) in enumerate(pairs) if one != other), None)
    if parted_at is None:
        return None
    ours = plain.logprobs[parted_at]
    rival = dict(ours.top).get(speculative.token_ids[parted_at])
    if rival is None or ours.logprob - rival > tie_nats:
        raise EngineError(
            f"greedy output differs between the modes at token {parted_at}: "
            f"plain {list(plain.token_ids)}, speculative {list(speculative.token_ids)}"
        )
    return parted_at
