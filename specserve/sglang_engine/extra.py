"""`engine.extra_args`: raw arguments, as long as they contradict nothing that specserve sets."""

import re
from collections.abc import Iterator, Mapping
from types import MappingProxyType

from specserve.errors import Problem
from specserve.plan import Plan, SglangPlan
from specserve.rule_ids import RuleId
from specserve.sglang_engine.args import is_steered
from specserve.sglang_engine.key_map import MAPPED, PLACE_FIELDS
from specserve.sglang_engine.table import MIXED_CHUNK
from specserve.sglang_engine.versions import Release

KEY = "engine.extra_args"
# Other names of mapped settings, and settings that overrule a mapped one.
SYNONYMS: Mapping[str, str] = MappingProxyType(
    {
        "model": "model_path",
        "tensor_parallel_size": "tp_size",
        "speculative_draft_model": "speculative_draft_model_path",
        "speculative_dflash_block_size": "speculative_num_draft_tokens",
        "cuda_graph_bs": "cuda_graph_bs_decode",
        "cuda_graph_max_bs": "cuda_graph_bs_decode",
        "cuda_graph_max_bs_decode": "cuda_graph_bs_decode",
        "cuda_graph_config": "cuda_graph_bs_decode",
        "disable_cuda_graph": "cuda_graph_backend_decode",
        "disable_decode_cuda_graph": "cuda_graph_backend_decode",
        "disable_piecewise_cuda_graph": "cuda_graph_backend_prefill",
        "enable_breakable_cuda_graph": "cuda_graph_backend_prefill",
        "enforce_piecewise_cuda_graph": "cuda_graph_backend_prefill",
        "prefill_attention_backend": "attention_backend",
        "decode_attention_backend": "attention_backend",
        "torchao_config": "quantization",
        "nccl_init_addr": "dist_init_addr",
    }
)
# With any of these SGLang switches its adaptive mode off, with a warning only.
_UNSTEERED = (
    "enable_dp_attention",
    "attn_dp_size",
    "attention_data_parallel_size",
    "enable_multi_layer_eagle",
    "enable_two_batch_overlap",
    "enable_pdmux",
)
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_KEY_OF = {field: key for key, fields in MAPPED.items() for field in fields}


def extra_problems(plan: Plan, sglang: SglangPlan, release: Release) -> Iterator[Problem]:
    """Extra arguments that specserve sets itself, that cannot be passed, or that SGLang drops."""
    for name, value in sglang.engine.extra_args.items():
        reason = _objection(name, value) or _dropped(name, value, plan, sglang, release)
        if reason is None:
            continue
        expected, fix = reason
        yield Problem(
            rule=RuleId.EXTRA_ARGUMENT,
            key=f"{KEY}.{name}",
            value=value,
            expected=expected,
            fix=fix,
        )


def _objection(name: str, value: object) -> tuple[str, str] | None:
    """What is expected instead, and the fix; None if the argument can be passed."""
    if not _NAME.fullmatch(name):
        plain = name.strip("-").replace("-", "_")
        return "a name of SGLang's settings, with underscores", f"name it {plain}"
    field = SYNONYMS.get(name, name)
    if field in PLACE_FIELDS:
        return "no such name: the launcher sets it for each node", "remove it"
    if field in _KEY_OF:
        key = _KEY_OF[field]
        return f"no such name: specserve sets it from {key}", f"remove it, and set {key}"
    if name in ("api_key", "admin_api_key"):
        return "no such name: clients talk to specserve", "remove it, and set server.api_key"
    if name == "config":
        return "arguments here, not in another file", f"remove it, and name them in {KEY}"
    if value is False:
        return "true: a switch of SGLang's cannot be given as false", "remove it"
    return None


def _dropped(
    name: str, value: object, plan: Plan, sglang: SglangPlan, release: Release
) -> tuple[str, str] | None:
    """What SGLang would take back, or take other settings back for."""
    drafter = sglang.speculation.kind
    if name == "enable_mixed_chunk" and drafter not in {"off", *MIXED_CHUNK.at(release)}:
        return f"not this: SGLang {release.table} switches it off with {drafter}", "remove it"
    # A width of 1 is no data parallelism; True is a switch, and equal to 1 in Python.
    if name not in _UNSTEERED or not is_steered(plan) or (value == 1 and value is not True):
        return None
    return (
        f"not this with policy={plan.policy.kind}: SGLang would switch off the mode in which the "
        "depth can change",
        "remove it, or choose policy=always",
    )
