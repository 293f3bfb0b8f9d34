"""The rule of each engine, as its documentation has it, read from what an export says.

Written apart from the package and the slow way round: no search, no merging of ranges.
"""

from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any


def vllm_steps(settings: Mapping[str, Any], batch: int) -> int:
    """[a, b, K] inclusive; a gap, and all beyond the last entry, keep the K before; K clamped."""
    speculative = settings["speculative-config"]
    most: int = speculative["num_speculative_tokens"]
    table = speculative.get("num_speculative_tokens_per_batch_size", [[1, 1, most]])
    validate_vllm_table(table)
    steps: list[int] = [k for first, _, k in table if first <= batch]
    return min(most, steps[-1])


def validate_vllm_table(table: Sequence[Sequence[int]]) -> None:
    """Entries start at 1, are inclusive ranges and do not overlap."""
    assert table[0][0] == 1
    assert all(first <= last and k >= 0 for first, last, k in table)
    assert all(ahead[1] < behind[0] for ahead, behind in pairwise(table))


def tensorrt_llm_steps(settings: Mapping[str, Any], batch: int) -> int:
    """The first key that is not below the batch; above the last 0."""
    speculative = settings["speculative_config"]
    most: int = speculative["max_draft_len"]
    schedule = speculative.get("draft_len_schedule")
    if schedule is None and "max_concurrency" not in speculative:
        return most
    if schedule is None:
        schedule = {speculative["max_concurrency"]: most}
    assert "max_concurrency" not in speculative or "draft_len_schedule" not in speculative
    assert min(schedule) >= 1
    assert schedule[min(schedule)] == most == max(schedule.values())
    return next((schedule[key] for key in sorted(schedule) if key >= batch), 0)


def old_tensorrt_llm_steps(settings: Mapping[str, Any], batch: int) -> int:
    """Before the keys were turned round: max_concurrency is all that means the same."""
    speculative = settings["speculative_config"]
    assert "draft_len_schedule" not in speculative
    most: int = speculative["max_draft_len"]
    return most if batch <= speculative["max_concurrency"] else 0


def sglang_padded(sizes: Sequence[int], batch: int) -> int:
    """The next captured size; above the largest, and without any, the batch itself."""
    return min((size for size in sizes if size >= batch), default=batch)


def sglang_steps(settings: Mapping[str, Any], slots: Mapping[str, Any] | None, batch: int) -> int:
    """The largest key not above the padded batch, else the smallest; its first candidate."""
    static: int = settings["speculative-num-steps"]
    assert settings["speculative-num-draft-tokens"] == static + 1
    if slots is None:
        assert "speculative-adaptive" not in settings
        return static
    assert settings["speculative-adaptive"] is True
    assert settings["speculative-eagle-topk"] == 1
    candidates = {int(k): v["candidate_steps"] for k, v in slots.items() if k.isdigit()}
    assert all(len(steps) == 1 for steps in candidates.values())
    assert [static] in candidates.values()
    padded = sglang_padded(settings.get("cuda-graph-bs-decode", ()), batch)
    key = max((key for key in candidates if key <= padded), default=min(candidates))
    steps: int = candidates[key][0]
    return steps
