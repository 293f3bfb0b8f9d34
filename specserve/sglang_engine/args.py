"""Plan -> SGLang's server arguments: the values. Their names are in key_map.py."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import assert_never

from specserve.config.policy import AlwaysPolicy
from specserve.config.speculation import (
    DflashSpeculation,
    Eagle3Speculation,
    EagleSpeculation,
    MtpSpeculation,
    NgramSpeculation,
    NoSpeculation,
    StandaloneSpeculation,
)
from specserve.plan import Plan, SglangPlan
from specserve.sglang_engine.arguments import Argument, File, ServerArguments, Value, Variable
from specserve.sglang_engine.key_map import MAPPED
from specserve.sglang_engine.table import SKIPPED_UPKEEP
from specserve.sglang_engine.versions import Release

_ALGORITHM = {
    "eagle3": "EAGLE3",
    "eagle": "EAGLE",
    "mtp": "NEXTN",
    "standalone": "STANDALONE",
    "ngram": "NGRAM",
    "dflash": "DFLASH",
}
_MATCH = {"recent": "BFS", "frequent": "PROB"}
_ADAPTIVE_FILE = "sglang_adaptive.json"


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where one node's server listens, and where its ranks meet those of the other nodes."""

    host: str
    port: int
    node_rank: int
    dist_init_addr: str | None


def map_plan(plan: Plan, sglang: SglangPlan, release: Release) -> ServerArguments:
    """What a sound plan becomes; `settle` is what checks a plan first."""
    own = (
        *_model(plan, sglang),
        *_speculation(plan, sglang),
        *_scheduler(plan, sglang),
        *_execution(plan, sglang),
    )
    extra = tuple(
        Argument(field=name, value=_value(value), key=f"engine.extra_args.{name}")
        for name, value in sglang.engine.extra_args.items()
    )
    return ServerArguments(
        release=release.table,
        arguments=own + extra,
        environment=tuple(_environment(plan, sglang, release)),
    )


def placed(arguments: ServerArguments, place: Place) -> ServerArguments:
    """`arguments` for one node."""
    values: dict[str, Value] = {"host": place.host, "port": place.port}
    if place.dist_init_addr is not None:
        values |= {"node_rank": place.node_rank, "dist_init_addr": place.dist_init_addr}
    added = tuple(
        Argument(field=field, value=value, key="the place of this node")
        for field, value in values.items()
    )
    return replace(arguments, arguments=arguments.arguments + added)


def is_steered(plan: Plan) -> bool:
    """Whether the depth can change while the server runs: SGLang then builds a state per depth."""
    return plan.speculation is not None and not isinstance(plan.policy, AlwaysPolicy)


def _model(plan: Plan, sglang: SglangPlan) -> Iterator[Argument]:
    target = plan.target
    yield _argument("model.path", target.path)
    yield _argument("model.name", target.name)
    yield _argument("model.dtype", target.dtype)
    yield _argument("model.context_length", target.context_length)
    if target.trust_remote_code:
        yield _argument("model.trust_remote_code", True)
    # A stored form is read off the checkpoint, and some have two names there.
    if target.quantization != "none" and not sglang.stored_quantized:
        yield _argument("quantization.kind", target.quantization)


def _speculation(plan: Plan, sglang: SglangPlan) -> Iterator[Argument]:
    asked = sglang.speculation
    if isinstance(asked, NoSpeculation):
        return
    yield _argument("speculation.kind", _ALGORITHM[asked.kind])
    match asked:
        case NgramSpeculation():
            yield from _ngram(asked)
        case DflashSpeculation():
            yield from _draft(plan, bundled=False)
        case MtpSpeculation():
            yield from _draft(plan, bundled=asked.draft.path is None)
            yield from _steps(plan)
        case Eagle3Speculation() | EagleSpeculation() | StandaloneSpeculation():
            yield from _draft(plan, bundled=False)
            yield from _steps(plan)
        case _:
            assert_never(asked)


def _ngram(asked: NgramSpeculation) -> Iterator[Argument]:
    yield _argument("speculation.num_draft_tokens", asked.num_draft_tokens)
    yield _argument("speculation.max_trie_depth", asked.max_trie_depth)
    yield _argument("speculation.min_breadth", asked.min_breadth)
    yield _argument("speculation.max_breadth", asked.max_breadth)
    yield _argument("speculation.match", _MATCH[asked.match])
    yield _argument("speculation.capacity", asked.capacity)


def _draft(plan: Plan, *, bundled: bool) -> Iterator[Argument]:
    """Named even where it is the target itself, so that nothing is left to SGLang's guess."""
    if plan.speculation is None:
        return
    draft = plan.speculation.draft
    yield _argument("speculation.draft.path", draft.path)
    if not bundled:
        # Left out, the draft would inherit the target's scheme.
        scheme = "unquant" if draft.quantization == "none" else draft.quantization
        yield _argument("quantization.draft", scheme)
    yield _argument("speculation.num_draft_tokens", plan.speculation.num_draft_tokens)


def _steps(plan: Plan) -> Iterator[Argument]:
    if plan.speculation is None:
        return
    yield _argument("speculation.num_steps", plan.speculation.num_steps)
    yield _argument("speculation.topk", plan.speculation.topk)
    if is_steered(plan):
        yield Argument(field="speculative_adaptive", value=True, key="policy.kind")
        depths = [0, *plan.speculation.depths]
        content = json.dumps({"1": {"candidate_steps": depths}})
        file = File(_ADAPTIVE_FILE, content)
        yield Argument(field="speculative_adaptive_config", value=file, key="policy.kind")


def _scheduler(plan: Plan, sglang: SglangPlan) -> Iterator[Argument]:
    scheduler = plan.scheduler
    if scheduler.kind == "sync":
        yield _argument("scheduler.kind", True)
    yield _argument("scheduler.max_running_requests", scheduler.max_running_requests)
    yield _argument("scheduler.prefill_chunk_tokens", scheduler.prefill_chunk_tokens)
    yield _argument("scheduler.max_kv_tokens", scheduler.max_kv_tokens)
    yield _argument("scheduler.step_limit_seconds", sglang.step_limit_seconds)


def _execution(plan: Plan, sglang: SglangPlan) -> Iterator[Argument]:
    engine = sglang.engine
    yield _argument("engine.device", plan.device)
    yield _argument("attention.kind", plan.attention)
    if plan.cuda_graph_batch_sizes:
        yield _argument("cuda_graph.batch_sizes", plan.cuda_graph_batch_sizes)
    else:
        for field in MAPPED["cuda_graph.kind"]:
            yield Argument(field=field, value="disabled", key="cuda_graph.kind")
    yield _argument("parallel.tensor_parallel", plan.tensor_parallel)
    yield _argument("parallel.num_nodes", plan.num_nodes)
    if engine.memory_fraction != "auto":
        yield _argument("engine.memory_fraction", engine.memory_fraction)
    if engine.kv_cache_dtype != "auto":
        yield _argument("engine.kv_cache_dtype", engine.kv_cache_dtype)
    if engine.page_size != "auto":
        yield _argument("engine.page_size", engine.page_size)
    yield _argument("logging.level", sglang.log_level)


def _environment(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Variable]:
    if is_steered(plan) and plan.speculation and plan.speculation.while_off != "warm":
        name = SKIPPED_UPKEEP.at(release)
        yield Variable(name=name, value="1", key="policy.while_off")
    if sglang.engine.device == "cpu":
        yield Variable(name="SGLANG_USE_CPU_ENGINE", value="1", key="engine.device")
        yield Variable(name="CUDA_VISIBLE_DEVICES", value="", key="engine.device")


def _argument(key: str, value: Value) -> Argument:
    """For a key that becomes one setting."""
    [field] = MAPPED[key]
    return Argument(field=field, value=value, key=key)


def _value(extra: object) -> Value:
    """A value of `engine.extra_args`; its model admits nothing else."""
    if isinstance(extra, list):
        return tuple(extra)
    if isinstance(extra, str | int | float):
        return extra
    raise TypeError(f"{extra!r} is no value of engine.extra_args")
