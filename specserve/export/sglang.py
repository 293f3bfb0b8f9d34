"""SGLang: the JSON file of `--speculative-adaptive-config`, with one candidate for each key.

The rule, defined in sglang/srt/speculative/adaptive_spec_params.py (0.5.23, AdaptiveStepSlot and
AdaptiveSpeculativeParams) and described in docs/advanced_features/adaptive_speculative_decoding.md:

- A decode batch (prefills are batches of their own) is padded to the next size of
  --cuda-graph-bs-decode, if such sizes are given; above the largest it stays as it is.
- The largest key that is not above the padded size counts; below every key the smallest.
- A slot with a single candidate step never leaves it, so its hysteresis and moving average have no
  effect. Step 0 is plain decoding.
- --speculative-num-steps must be one of the candidates; the tokens to verify follow, steps + 1.
- Keys that are not numbers are not slots, so a comment has room.
- EAGLE and EAGLE3 with topk 1 only: with any other setting SGLang warns and drafts statically.
- With step 0 the draft goes on reading what was generated, which is while_off=warm, unless
  SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND=1 makes it while_off=skip.
- --max-running-requests is 48 with speculation, unless given.

Padding moves a boundary to the captured size below it: with sizes 8 and 16 a batch of 9 is a batch
of 16, so nothing can change between 9 and 16. A depth that changes above N running decodes is
exact only if N is a captured size, or not below the largest. So this export always names the sizes:
cuda_graph.batch_sizes=auto becomes the usual ladder with the boundaries added, a list is taken as
it is and refused if a boundary is not in it.

| version | |
|---|---|
| 0.5.23 | as above; without --cuda-graph-bs-decode the look-up does not pad |
| others | not read: keys of the JSON file and names of flags may differ |
"""

from collections.abc import Iterator

from specserve.config.quote import shell_override
from specserve.errors import Problem
from specserve.export.engine import Attachment, TargetEngine, Translation
from specserve.export.ranges import boundaries
from specserve.export.source import Source
from specserve.plan.cuda_graphs import ladder
from specserve.rule_ids import RuleId

_SIZES = "cuda_graph.batch_sizes"


def captured_sizes(source: Source) -> tuple[int, ...]:
    """Batch sizes, in requests, that SGLang is told to capture; none with cuda_graph.kind=off."""
    graphs = source.config.cuda_graph
    if graphs.kind == "off":
        return ()
    if graphs.batch_sizes != "auto":
        return tuple(graphs.batch_sizes)
    limit = source.max_running_requests
    within = {boundary for boundary in boundaries(source.ranges) if boundary < limit}
    return tuple(sorted({*ladder(limit), *within}))


def _problems(source: Source) -> Iterator[Problem]:
    if not source.switches:
        return
    if source.speculation.topk > 1:
        yield Problem(
            rule=RuleId.NOT_EXPORTABLE,
            key="speculation.topk",
            value=source.speculation.topk,
            expected="1 for a depth that depends on the batch: SGLang's adaptive mode drafts "
            "chains only",
            fix="choose speculation=eagle3_topk1, or policy=always",
        )
    sizes = captured_sizes(source)
    inside = [b for b in boundaries(source.ranges) if b < max(sizes, default=0) and b not in sizes]
    if inside:
        yield Problem(
            rule=RuleId.NOT_EXPORTABLE,
            key=_SIZES,
            value=list(sizes),
            expected=f"{_listed(inside)} among the sizes: SGLang pads a batch to the next of them "
            "before it looks up the depth, so the depth can change at a captured size only",
            fix=f"set {shell_override(_SIZES, sorted({*sizes, *inside}))}, or {_SIZES}=auto",
        )


def _translate(source: Source) -> Translation:
    settings: dict[str, object] = {
        "max-running-requests": source.max_running_requests,
        "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": source.draft_path,
        "speculative-num-steps": source.deepest,
        "speculative-eagle-topk": source.speculation.topk,
        "speculative-num-draft-tokens": source.num_draft_tokens,
    }
    if not source.switches:
        return Translation(settings=settings, environment={}, attachment=None)
    return Translation(
        settings={
            **settings,
            **_graphs(source),
            "speculative-num-draft-tokens": source.deepest + 1,
            "speculative-adaptive": True,
        },
        environment=_environment(source),
        attachment=Attachment(key="speculative-adaptive-config", content=_slots(source)),
    )


def _slots(source: Source) -> dict[str, object]:
    return {str(r.first): {"candidate_steps": [r.num_steps]} for r in source.ranges}


def _graphs(source: Source) -> dict[str, object]:
    sizes = captured_sizes(source)
    return {"cuda-graph-bs-decode": sizes} if sizes else {"disable-decode-cuda-graph": True}


def _environment(source: Source) -> dict[str, str]:
    if source.while_off == "skip":
        return {"SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND": "1"}
    return {}


def _listed(sizes: list[int]) -> str:
    return ", ".join(map(str, sizes))


SGLANG = TargetEngine(
    name="SGLang",
    rule="of 0.5.23",
    counts="the decode batch, padded to a captured size",
    command="python -m sglang.launch_server --model-path MODEL --config {file}",
    while_off=("warm", "skip"),
    problems=_problems,
    translate=_translate,
)
