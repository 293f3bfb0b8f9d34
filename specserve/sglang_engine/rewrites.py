"""What SGLang makes of a plan without being asked: told where it was left open, refused elsewhere.

SGLang changes settings while it resolves its arguments, mostly with a warning in its log. What the
configuration left open is predicted here and stands in the plan as an adjustment. A value that the
configuration sets and SGLang would not keep is refused, with the setting that it keeps.

Its defaults are never asked: the admission limit (else 48 under speculation), a chain's
num_draft_tokens and the draft's quantization (else the target's) are always set by name.
"""

from collections.abc import Callable, Iterator

from specserve.config.quote import shell_override
from specserve.config.speculation import NgramSpeculation, NoSpeculation
from specserve.errors import Doubt, Problem
from specserve.plan import Adjustment, Plan, SglangPlan
from specserve.rule_ids import RuleId
from specserve.sglang_engine.draft_rules import aux_layers, head_class, steering
from specserve.sglang_engine.table import (
    FP8_OF_FA3,
    NGRAM_OVER_PAGES,
    OVERLAP_ON_A_CPU,
    TOKENS_PER_REQUEST,
    TREE_OVER_PAGES,
    TREE_WITH_OVERLAP,
    USUAL_PAGE_SIZE,
)
from specserve.sglang_engine.versions import Release

Rule = Callable[[Plan, SglangPlan, Release], Iterator[Problem]]


def rewrite_problems(plan: Plan, sglang: SglangPlan, release: Release) -> list[Problem]:
    """Values that SGLang would not keep, or would compute wrongly with."""
    return [problem for rule in RULES for problem in rule(plan, sglang, release)]


def adjustments(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Adjustment]:
    """What SGLang decides where the configuration says auto."""
    engine = sglang.engine
    page_size = page_size_of(sglang, release)
    if engine.page_size == "auto":
        reason = f"what {plan.attention} takes in SGLang {release.table}"
        yield _adjustment("engine.page_size", "auto", page_size, reason)
    if engine.kv_cache_dtype == "auto":
        effective, reason = _kv_cache_dtype(plan)
        yield _adjustment("engine.kv_cache_dtype", "auto", effective, reason)
    tokens = plan.scheduler.max_kv_tokens
    if tokens % page_size:
        kept = tokens // page_size * page_size
        yield _adjustment("scheduler.max_kv_tokens", tokens, kept, f"whole pages of {page_size}")


def doubts(plan: Plan, sglang: SglangPlan) -> Iterator[Doubt]:
    """What SGLang does otherwise than a client would expect."""
    if plan.device == "cpu" and not isinstance(sglang.speculation, NoSpeculation):
        yield Doubt(
            rule=RuleId.GREEDY_ON_A_CPU,
            key="engine.device",
            text="on a CPU SGLang verifies greedily: temperature and top_p act on the first token "
            "only",
        )


def page_size_of(sglang: SglangPlan, release: Release) -> int:
    """Tokens of one KV page, as they will be."""
    asked = sglang.engine.page_size
    return USUAL_PAGE_SIZE.at(release) if asked == "auto" else asked


def overlap_on_a_cpu(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """SGLang falls back to the sync scheduler."""
    drafts = not isinstance(sglang.speculation, NoSpeculation)
    overlap = plan.scheduler.kind == "overlap"
    if drafts and overlap and plan.device == "cpu" and not OVERLAP_ON_A_CPU.at(release):
        yield Problem(
            rule=RuleId.WOULD_BE_REWRITTEN,
            key="scheduler",
            value="overlap",
            expected="sync, which SGLang takes with speculation on a CPU whatever it is told",
            fix="choose scheduler=sync",
        )


def tree_with_overlap(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """Whether the worker of the overlap scheduler drafts trees. (A04)"""
    topk = _topk(plan, sglang)
    if topk > 1 and plan.scheduler.kind == "overlap" and not TREE_WITH_OVERLAP.at(release):
        yield Problem(
            rule=RuleId.TREE_WITHOUT_SUPPORT,
            key="speculation.topk",
            value=topk,
            expected=f"1 under scheduler=overlap in SGLang {release.table}",
            fix="choose scheduler=sync, or policy=always speculation=eagle3_topk1",
        )


def tree_over_pages(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """A tree's branches share pages, which not every back-end can tell apart. (A05)"""
    topk, page_size = _topk(plan, sglang), page_size_of(sglang, release)
    ngram = isinstance(sglang.speculation, NgramSpeculation)
    able = (NGRAM_OVER_PAGES if ngram else TREE_OVER_PAGES).at(release)
    if topk == 1 or page_size == 1 or plan.attention in able:
        return
    width = "speculation.max_breadth" if ngram else "speculation.topk"
    yield Problem(
        rule=RuleId.TREE_WITHOUT_SUPPORT,
        key="engine.page_size",
        value=page_size,
        expected=f"1 for attention={plan.attention} with {width}={topk}; a tree over pages is "
        f"verified by {_listed(sorted(able))} only",
        fix=f"set engine.page_size=1, or choose attention={sorted(able)[0]}",
    )


def fp8_of_the_backend(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """fa3 gives way to triton for a KV type that it lacks."""
    dtype = sglang.engine.kv_cache_dtype
    if plan.attention == "fa3" and dtype.startswith("fp8") and dtype not in FP8_OF_FA3.at(release):
        yield Problem(
            rule=RuleId.WOULD_BE_REWRITTEN,
            key="engine.kv_cache_dtype",
            value=dtype,
            expected="auto, bfloat16 or fp8_e4m3 with attention=fa3: for this SGLang would take "
            "triton in its place",
            fix="set engine.kv_cache_dtype=fp8_e4m3, or choose attention=triton",
        )


def graph_sizes(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """Sizes above the admission limit are dropped, and the limit is put in their place."""
    sizes, limit = plan.cuda_graph_batch_sizes, plan.scheduler.max_running_requests
    if sizes and sizes[-1] > limit:
        kept = [*(size for size in sizes if size < limit), limit]
        yield Problem(
            rule=RuleId.WOULD_BE_REWRITTEN,
            key="cuda_graph.batch_sizes",
            value=list(sizes),
            expected=f"sizes up to scheduler.max_running_requests, {limit}: SGLang drops larger "
            "ones",
            fix=f"set {shell_override('cuda_graph.batch_sizes', kept)}, "
            f"or scheduler.max_running_requests={sizes[-1]}",
        )


def admission(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """SGLang admits no more requests than the pool holds a few tokens of each."""
    limit, each = plan.scheduler.max_running_requests, TOKENS_PER_REQUEST.at(release)
    most = plan.scheduler.max_kv_tokens // each
    if limit > most:
        yield Problem(
            rule=RuleId.WOULD_BE_REWRITTEN,
            key="scheduler.max_running_requests",
            value=limit,
            expected=f"at most {most}, for SGLang wants {each} KV tokens for each request, of "
            f"{plan.scheduler.max_kv_tokens}",
            fix=f"set scheduler.max_running_requests={most}, "
            f"or scheduler.max_kv_tokens={limit * each}",
        )


def chunk_of_pages(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """A chunk of a prompt is a number of whole pages."""
    chunk, page_size = plan.scheduler.prefill_chunk_tokens, page_size_of(sglang, release)
    if chunk % page_size:
        fitting = max(1, chunk // page_size) * page_size
        yield Problem(
            rule=RuleId.CHUNK_OVER_PAGES,
            key="scheduler.prefill_chunk_tokens",
            value=chunk,
            expected=f"a multiple of engine.page_size, {page_size}",
            fix=f"set scheduler.prefill_chunk_tokens={fitting}",
        )


RULES: tuple[Rule, ...] = (
    overlap_on_a_cpu,
    tree_with_overlap,
    tree_over_pages,
    fp8_of_the_backend,
    graph_sizes,
    admission,
    chunk_of_pages,
    steering,
    head_class,
    aux_layers,
)


def _topk(plan: Plan, sglang: SglangPlan) -> int:
    """Branches of a node of the tree; 1 for a chain, a block, or no speculation."""
    if isinstance(sglang.speculation, NgramSpeculation):
        return sglang.speculation.max_breadth
    return plan.speculation.topk if plan.speculation else 1


def _kv_cache_dtype(plan: Plan) -> tuple[str, str]:
    section = plan.target.config.get("quantization_config") or {}
    scheme = section.get("kv_cache_scheme") or {}
    stored = str(section.get("kv_cache_quant_algo", "")).upper()
    is_fp8 = (scheme.get("type"), scheme.get("num_bits")) == ("float", 8)
    if stored == "FP8" or is_fp8:
        return "fp8_e4m3", "the target's checkpoint brings scales for an 8-bit cache"
    return plan.target.dtype, "the activation type"


def _adjustment(key: str, asked: object, effective: object, reason: str) -> Adjustment:
    return Adjustment(key=key, asked=asked, effective=effective, reason=reason)


def _listed(names: list[str]) -> str:
    return ", ".join(names)
