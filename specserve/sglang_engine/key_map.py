"""Which of SGLang's settings each key of the configuration becomes, or who reads it instead.

A test holds both tables against the reviewed list of keys, and SGLang's names against the releases.
"""

from collections.abc import Mapping
from types import MappingProxyType

MAPPED: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        "model.path": ("model_path",),
        "model.name": ("served_model_name",),
        "model.dtype": ("dtype",),
        "model.context_length": ("context_length",),
        "model.trust_remote_code": ("trust_remote_code",),
        "quantization.kind": ("quantization",),
        "quantization.draft": ("speculative_draft_model_quantization",),
        "speculation.kind": ("speculative_algorithm",),
        "speculation.draft.path": ("speculative_draft_model_path",),
        "speculation.num_steps": ("speculative_num_steps",),
        "speculation.topk": ("speculative_eagle_topk",),
        "speculation.num_draft_tokens": ("speculative_num_draft_tokens",),
        "speculation.max_trie_depth": ("speculative_ngram_max_trie_depth",),
        "speculation.min_breadth": ("speculative_ngram_min_bfs_breadth",),
        "speculation.max_breadth": ("speculative_ngram_max_bfs_breadth",),
        "speculation.match": ("speculative_ngram_match_type",),
        "speculation.capacity": ("speculative_ngram_capacity",),
        "policy.kind": ("speculative_adaptive", "speculative_adaptive_config"),
        "scheduler.kind": ("disable_overlap_schedule",),
        "scheduler.max_running_requests": ("max_running_requests",),
        "scheduler.prefill_chunk_tokens": ("chunked_prefill_size",),
        "scheduler.max_kv_tokens": ("max_total_tokens",),
        "scheduler.step_limit_seconds": ("watchdog_timeout",),
        "attention.kind": ("attention_backend",),
        "cuda_graph.kind": ("cuda_graph_backend_decode", "cuda_graph_backend_prefill"),
        "cuda_graph.batch_sizes": ("cuda_graph_bs_decode",),
        "parallel.tensor_parallel": ("tp_size",),
        "parallel.num_nodes": ("nnodes",),
        "engine.device": ("device",),
        "engine.memory_fraction": ("mem_fraction_static",),
        "engine.kv_cache_dtype": ("kv_cache_dtype",),
        "engine.page_size": ("page_size",),
        "logging.level": ("log_level",),
    }
)
_STEERED = "the policy that specserve's plugin puts into SGLang's scheduler processes"
_SUPERVISED = "the supervisor, which starts SGLang and watches it"
_HTTP = "specserve's own HTTP side, which stands before SGLang's"
ELSEWHERE: Mapping[str, str] = MappingProxyType(
    {
        "model.draft_path": "speculation.draft.path, which refers to it",
        "quantization.group_size": "the checkpoint, which says it itself; a difference is refused",
        "speculation.draft.aux_layer_ids": "the draft's config.json; a difference is refused",
        "speculation.draft.aux_layer_convention": "the target's class; a difference is refused",
        "policy.bounds.disable_above": _STEERED,
        "policy.bounds.schedule": _STEERED,
        "policy.calibration": _STEERED,
        "policy.disable_above": _STEERED,
        "policy.explore_every_rounds": _STEERED,
        "policy.hysteresis": _STEERED,
        "policy.margin": _STEERED,
        "policy.max_inter_token_ms": _STEERED,
        "policy.min_acceptance": _STEERED,
        "policy.min_dwell_rounds": _STEERED,
        "policy.resume_at": _STEERED,
        "policy.schedule": _STEERED,
        "policy.while_off": f"{_STEERED}, and an environment variable",
        "policy.window_rounds": _STEERED,
        # SGLang's own limit counts requests that could start at once, so 0 would refuse them all.
        "scheduler.max_queued_requests": _HTTP,
        "engine.kind": "the choice of the engine itself",
        "engine.num_threads": "engine=torch",
        "engine.allow_untested_version": "the table of versions",
        "engine.strict_effective": _SUPERVISED,
        "engine.extra_args": "SGLang, name by name (specserve/sglang_engine/extra.py)",
        "build.limit_seconds.attention_backend": _SUPERVISED,
        "build.limit_seconds.attributes": _SUPERVISED,
        "build.limit_seconds.cuda_graphs": _SUPERVISED,
        "build.limit_seconds.kv_cache": _SUPERVISED,
        "build.limit_seconds.load_draft": _SUPERVISED,
        "build.limit_seconds.load_target": _SUPERVISED,
        "build.limit_seconds.self_test": _SUPERVISED,
        "build.self_test_tokens": _SUPERVISED,
        "logging.format": "specserve's own log",
        "server.api_key": _HTTP,
        "server.drain_seconds": _HTTP,
        "server.host": _HTTP,
        "server.max_body_bytes": _HTTP,
        "server.port": _HTTP,
        "task.kind": "the command line",
    }
)
# What the launcher adds for one place (`placed`); no key of the configuration.
PLACE_FIELDS = ("host", "port", "node_rank", "dist_init_addr")
