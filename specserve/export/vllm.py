"""vLLM: `num_speculative_tokens_per_batch_size` in `--speculative-config`.

The rule, as documented in docs/features/speculative_decoding/dynamic_speculative_decoding.md (0.24
and later) and defined in vllm/v1/spec_decode/dynamic/utils.py (main, September 2026):

- Entries [a, b, K]: from a to b requests, both inclusive, K draft tokens. They start at 1 and do
  not overlap.
- A gap keeps the K of the entry before it, and so does everything beyond the last entry: a table
  that ends at N goes on speculating above N. "Off above N" needs an entry [N+1, …, 0].
- K is clamped to num_speculative_tokens.
- The batch size is the number of requests scheduled in the step, prefills included
  (vllm/v1/core/sched/scheduler.py; reported in vLLM issue 49548).
- With K = 0 the draft still runs its first pass, which keeps its KV cache in step with the target
  (vllm/v1/spec_decode/llm_base_proposer.py): that is while_off=warm.
- Switched off, with a static K instead, when --data-parallel-size is above 1.

| version | |
|---|---|
| 0.24 | documented; its EAGLE examples set VLLM_USE_V2_MODEL_RUNNER=0 |
| 0.26.1rc1 | the V2 model runner is reported to ignore the K of the step (vLLM issue 51510) |
| main, September 2026 | the same table; the examples still set VLLM_USE_V2_MODEL_RUNNER=0 |

EAGLE-3 drafts are chains. The configuration file is YAML of flags without their dashes; a nested
mapping is passed on as JSON (vllm/utils/argparse_utils.py).
"""

from collections.abc import Iterator, Mapping

from specserve.errors import Problem
from specserve.export.engine import TargetEngine, Translation
from specserve.export.source import Source
from specserve.rule_ids import RuleId


def _problems(source: Source) -> Iterator[Problem]:
    if source.speculation.topk > 1:
        yield Problem(
            rule=RuleId.NOT_EXPORTABLE,
            key="speculation.topk",
            value=source.speculation.topk,
            expected="1: vLLM drafts a chain with EAGLE-3, no tree",
            fix="choose speculation=eagle3_topk1",
        )


def _translate(source: Source) -> Translation:
    speculative: dict[str, object] = {
        "method": "eagle3",
        "model": source.draft_path,
        "num_speculative_tokens": source.deepest,
    }
    environment: Mapping[str, str] = {}
    if source.switches:
        speculative["num_speculative_tokens_per_batch_size"] = _table(source)
        environment = {"VLLM_USE_V2_MODEL_RUNNER": "0"}
    return Translation(
        settings={"max-num-seqs": source.max_running_requests, "speculative-config": speculative},
        environment=environment,
        attachment=None,
    )


def _table(source: Source) -> list[tuple[int, int, int]]:
    """An end for the last range too, which vLLM demands and does not heed: see the rule."""
    limit = source.max_running_requests
    return [
        (r.first, max(r.first, limit) if r.last is None else r.last, r.num_steps)
        for r in source.ranges
    ]


VLLM = TargetEngine(
    name="vLLM",
    rule="documented since 0.24",
    counts="every request scheduled in the step, prefills included",
    command="vllm serve MODEL --config {file}",
    while_off=("warm",),
    problems=_problems,
    translate=_translate,
)
