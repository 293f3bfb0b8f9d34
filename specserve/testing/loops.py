"""A decoding loop for checkpoint folders, and requests to put through it, without a worker."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch
from transformers import AutoTokenizer

from specserve.calibration.table import Calibration
from specserve.config.policy import AlwaysPolicy, OffPolicy, PolicyConfig, WhileOff
from specserve.engine import (
    FinishReason,
    GenerationChunk,
    GenerationRequest,
    RequestCounters,
    Sampling,
    TokenLogprob,
)
from specserve.plan import DraftPlan, MemoryPlan, Plan, SchedulerPlan, SpeculationPlan, TargetPlan
from specserve.plan.rows import row_slack
from specserve.testing.plans import draft_plan, target_plan
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.loop import Loop
from specserve.torch_engine.tree import num_tree_nodes
from specserve.torch_engine.weights import load_draft, load_target

GREEDY = Sampling(temperature=0.0, top_p=1.0, top_k=None, min_p=0.0, seed=0, logit_bias={})


@dataclass(frozen=True, slots=True, kw_only=True)
class Speculation:
    """What to draft, with which head. `num_draft_tokens` None takes all that the tree holds."""

    draft_folder: Path
    num_steps: int = 3
    topk: int = 1
    num_draft_tokens: int | None = None
    while_off: WhileOff = "skip"
    aux_layer_inputs: tuple[int, ...] = (2, 4, 5)


@dataclass(frozen=True, slots=True, kw_only=True)
class Sizes:
    """The scheduler's limits.

    `max_kv_tokens` None: a full context for each running request. `row_tokens` None: room for
    that, and for what the last rounds overshoot.
    """

    kind: Literal["overlap", "sync"] = "sync"
    max_running_requests: int = 8
    max_queued_requests: int = 100
    prefill_chunk_tokens: int = 64
    max_kv_tokens: int | None = None
    row_tokens: int | None = None


def open_loop(
    target_folder: Path,
    speculation: Speculation | None = None,
    *,
    policy: PolicyConfig | None = None,
    calibration: Calibration | None = None,
    sizes: Sizes | None = None,
    eos_token_ids: tuple[int, ...] | None = None,
    device: str = "cpu",
) -> Loop:
    """A loop over freshly loaded weights; the policy is `always` if there is a draft, else off.

    `eos_token_ids` None takes the checkpoint's own.
    """
    plan = make_loop_plan(
        target_folder,
        speculation,
        policy=policy,
        calibration=calibration,
        sizes=sizes,
        eos_token_ids=eos_token_ids,
    )
    where = torch.device(device)
    aux = plan.speculation.draft.aux_layer_inputs if plan.speculation else ()
    target = load_target(plan.target, aux, where)
    draft = load_draft(plan.speculation.draft, target, where) if plan.speculation else None
    return Loop(
        plan=plan,
        target=target,
        draft=draft,
        target_cache=_cache(plan, plan.target, plan.target.num_layers, where),
        draft_cache=_cache(plan, plan.speculation.draft, 1, where) if plan.speculation else None,
        tokenizer=AutoTokenizer.from_pretrained(target_folder),
    )


def make_loop_plan(
    target_folder: Path,
    speculation: Speculation | None,
    *,
    policy: PolicyConfig | None,
    calibration: Calibration | None,
    sizes: Sizes | None,
    eos_token_ids: tuple[int, ...] | None,
) -> Plan:
    """The plan of such a loop, for the CPU; its memory figures are left at zero."""
    sizes = sizes or Sizes()
    target = target_plan(target_folder)
    if eos_token_ids is not None:
        target = target.model_copy(update={"eos_token_ids": eos_token_ids})
    planned = None if speculation is None else _speculation_plan(speculation)
    default = OffPolicy(kind="off") if planned is None else AlwaysPolicy(kind="always")
    return Plan(
        engine="torch",
        device="cpu",
        num_threads=1,
        target=target,
        speculation=planned,
        policy=policy or default,
        calibration=calibration,
        scheduler=_scheduler_plan(sizes, target.context_length, planned),
        attention="sdpa",
        cuda_graph_batch_sizes=(),
        tensor_parallel=1,
        num_nodes=1,
        self_test_tokens=8,
        memory=MemoryPlan.counted({}),
        adjustments=(),
        warnings=(),
    )


def _speculation_plan(speculation: Speculation) -> SpeculationPlan:
    num_steps, topk = speculation.num_steps, speculation.topk
    asked = speculation.num_draft_tokens
    draft = draft_plan(speculation.draft_folder, aux_layer_inputs=speculation.aux_layer_inputs)
    return SpeculationPlan(
        num_steps=num_steps,
        depths=tuple(range(1, num_steps + 1)),
        topk=topk,
        num_draft_tokens=asked or num_tree_nodes(num_steps, topk, 1_000_000),
        while_off=speculation.while_off,
        draft=draft,
    )


def _scheduler_plan(
    sizes: Sizes, context_length: int, speculation: SpeculationPlan | None
) -> SchedulerPlan:
    budget, row_tokens = sizes.max_kv_tokens, sizes.row_tokens
    slack = row_slack(speculation)
    return SchedulerPlan(
        kind=sizes.kind,
        device_thread=sizes.kind == "overlap",
        max_running_requests=sizes.max_running_requests,
        max_queued_requests=sizes.max_queued_requests,
        prefill_chunk_tokens=sizes.prefill_chunk_tokens,
        max_kv_tokens=context_length * sizes.max_running_requests if budget is None else budget,
        row_tokens=context_length + slack if row_tokens is None else row_tokens,
    )


def _cache(
    plan: Plan, model: TargetPlan | DraftPlan, num_layers: int, device: torch.device
) -> KVCache:
    return KVCache(
        num_layers=num_layers,
        num_rows=plan.scheduler.max_running_requests,
        row_tokens=plan.scheduler.row_tokens,
        num_kv_heads=model.num_kv_heads,
        head_dim=model.head_dim,
        dtype=getattr(torch, model.dtype),
        device=device,
    )


def make_request(
    prompt: Sequence[int],
    *,
    request_id: str = "request",
    max_tokens: int = 32,
    sampling: Sampling = GREEDY,
    stop: tuple[str, ...] = (),
    stop_token_ids: tuple[int, ...] = (),
    top_logprobs: int | None = None,
    speculation: bool = True,
    ignore_eos: bool = False,
) -> GenerationRequest:
    """A greedy request, unless told otherwise."""
    return GenerationRequest(
        request_id=request_id,
        prompt_token_ids=tuple(prompt),
        max_tokens=max_tokens,
        sampling=sampling,
        stop=stop,
        stop_token_ids=stop_token_ids,
        top_logprobs=top_logprobs,
        speculation=speculation,
        ignore_eos=ignore_eos,
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Generated:
    """All chunks of one request, joined."""

    token_ids: tuple[int, ...]
    text: str
    logprobs: tuple[TokenLogprob, ...]
    finish_reason: FinishReason | None
    counters: RequestCounters


def join_chunks(chunks: Sequence[GenerationChunk]) -> Generated:
    """What a client has after the last of a request's chunks."""
    return Generated(
        token_ids=tuple(token for chunk in chunks for token in chunk.token_ids),
        text="".join(chunk.text for chunk in chunks),
        logprobs=tuple(entry for chunk in chunks for entry in chunk.logprobs),
        finish_reason=chunks[-1].finish_reason,
        counters=chunks[-1].counters,
    )


def run_requests(
    loop: Loop, requests: Sequence[GenerationRequest], *, every: int = 0
) -> list[Generated]:
    """Submit all at once, or one every so many steps; the outputs, once nothing is left to do."""
    chunks: dict[str, list[GenerationChunk]] = {request.request_id: [] for request in requests}
    step = num_submitted = 0
    while loop.has_work or num_submitted < len(requests):
        while num_submitted < len(requests) and num_submitted * every <= step:
            loop.submit(requests[num_submitted])
            num_submitted += 1
        for chunk in loop.step():
            chunks[chunk.request_id].append(chunk)
        step += 1
    return [join_chunks(chunks[request.request_id]) for request in requests]
