"""TensorRT-LLM: `draft_len_schedule` or `max_concurrency` in `speculative_config`.

The rule, as documented for the fields of DecodingBaseConfig in tensorrt_llm/llmapi/llm_args.py and
defined in tensorrt_llm/_torch/speculative/utils.py, get_draft_len_for_batch_size:

- A key is the largest batch it holds for, inclusive: the first key that is not below the batch
  counts. Above the last key the draft length is 0.
- The smallest key must hold max_draft_len, and no key more: a schedule cannot start shallow.
- max_concurrency N is the schedule {N: max_draft_len}; the two exclude each other.
- The batch size is that of the scheduled batch, prefills included. It is looked up before it is
  padded to a CUDA graph, so padding moves no boundary.
- With length 0 drafting is skipped and the draft's cache falls behind: that is while_off=skip.
  (Pull request 16888, open when read, would draft at least 1 token instead.)

| version | keys of draft_len_schedule |
|---|---|
| before pull request 10860 (13 March 2026, towards 1.3) | lower bounds: the last key that is not \
above the batch; key 1 needed; two-model drafting only |
| since | upper bounds, as above; one-model drafting |

This export follows the newer rule. Where a policy has one threshold it uses max_concurrency, which
means the same in both.

A tree (use_dynamic_tree, dynamic_tree_max_topK, max_total_draft_tokens without the root) must hold
max_draft_len to dynamic_tree_max_topK * max_draft_len tokens; the schedule is for chains.
"""

from collections.abc import Iterator

from specserve.config.quote import shell_override
from specserve.errors import Problem
from specserve.export.engine import TargetEngine, Translation
from specserve.export.ranges import boundaries
from specserve.export.source import Source, plain_schedule
from specserve.rule_ids import RuleId


def _problems(source: Source) -> Iterator[Problem]:
    first = source.ranges[0].num_steps
    if first < source.deepest:
        yield _shallow_start(source, first)
    if source.speculation.topk > 1:
        yield from _tree_problems(source)


def _shallow_start(source: Source, first: int) -> Problem:
    lines = plain_schedule(source.policy)
    end = source.ranges[0].last
    deeper = [
        {**line, "num_steps": source.deepest} if end is not None and line["up_to"] <= end else line
        for line in lines
    ]
    return Problem(
        rule=RuleId.NOT_EXPORTABLE,
        key="policy.schedule",
        value=lines,
        expected=f"no line deeper than the first, {first}: TensorRT-LLM demands max_draft_len at "
        "the smallest key of draft_len_schedule",
        fix=f"set {shell_override('policy.schedule', deeper)}",
    )


def _tree_problems(source: Source) -> Iterator[Problem]:
    s, drafted = source.speculation, source.num_draft_tokens - 1
    if source.switches:
        yield Problem(
            rule=RuleId.NOT_EXPORTABLE,
            key="speculation.topk",
            value=s.topk,
            expected="1 for a depth that depends on the batch: TensorRT-LLM drafts trees of one "
            "size only",
            fix="choose speculation=eagle3_topk1, or policy=always",
        )
    elif not s.num_steps <= drafted <= s.topk * s.num_steps:
        yield Problem(
            rule=RuleId.NOT_EXPORTABLE,
            key="speculation.num_draft_tokens",
            value=source.num_draft_tokens,
            expected=f"{s.num_steps + 1} to {s.topk * s.num_steps + 1}: TensorRT-LLM's tree holds "
            "num_steps to num_steps * topk tokens beside the root",
            fix=f"set speculation.num_draft_tokens={s.topk * s.num_steps + 1}",
        )


def _translate(source: Source) -> Translation:
    return Translation(
        settings={
            "max_batch_size": source.max_running_requests,
            "speculative_config": {
                "decoding_type": "Eagle3",
                "max_draft_len": source.deepest,
                "speculative_model": source.draft_path,
                **_tree(source),
                **_schedule(source),
            },
        },
        environment={},
        attachment=None,
    )


def _tree(source: Source) -> dict[str, object]:
    if source.speculation.topk == 1:
        return {}
    return {
        "use_dynamic_tree": True,
        "dynamic_tree_max_topK": source.speculation.topk,
        "max_total_draft_tokens": source.num_draft_tokens - 1,
    }


def _schedule(source: Source) -> dict[str, object]:
    ends = boundaries(source.ranges)
    if not ends:
        return {}
    if len(ends) == 1:
        return {"max_concurrency": ends[0]}
    return {
        "draft_len_schedule": {r.last: r.num_steps for r in source.ranges if r.last is not None}
    }


TENSORRT_LLM = TargetEngine(
    name="TensorRT-LLM",
    rule="of pull request 10860, March 2026, and later",
    counts="every request of the scheduled batch, prefills included",
    command="trtllm-serve MODEL --config {file}",
    while_off=("skip",),
    problems=_problems,
    translate=_translate,
)
