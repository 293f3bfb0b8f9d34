"""What the plan counts is what a build holds, to the byte; the script's table says so."""

from pathlib import Path
from typing import Any

import pytest
from check_memory import MIB, Row, compare, lines, measure

from specserve.config.load import load_run
from specserve.facts import Facts, gather_facts, load_facts
from specserve.plan import Plan, make_plan
from specserve.testing.constructed import construct_pair

FACTS = Path(__file__).parents[1] / "data/facts/h200.json"
ON_CPU = ["+experiment=topk1_v2", "engine.device=cpu", "engine.num_threads=1"]


def rows(overrides: list[str]) -> dict[str, Row]:
    config = load_run([*ON_CPU, *overrides]).config
    facts = gather_facts(config)
    plan = make_plan(config, facts)
    return {row.what: row for row in compare(config, facts, plan, measure(plan))}


def test_the_demo_pair_holds_what_is_planned() -> None:
    found = rows(["scheduler.max_running_requests=2", "scheduler.prefill_chunk_tokens=16"])

    assert found["KV, target"].planned == 2 * 1032 * 10752
    for what in ("target weights", "draft weights", "KV, target", "KV, draft"):
        assert found[what].planned == found[what].real


@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_a_constructed_pair_holds_what_is_planned(tmp_path: Path, dtype: str) -> None:
    pair = construct_pair(tmp_path, dtype=dtype)  # type: ignore[arg-type]
    paths = [f"model.path={pair.target_folder}", f"model.draft_path={pair.draft_folder}"]

    found = rows([*paths, f"model.dtype={dtype}", "scheduler.prefill_chunk_tokens=16"])

    for what in ("target weights", "draft weights", "KV, target", "KV, draft"):
        assert found[what].planned == found[what].real


@pytest.mark.parametrize(
    ("planned", "limit", "holds"),
    [(104, 0.05, True), (106, 0.05, False), (96, 0.05, True), (94, 0.05, False), (9, None, True)],
)
def test_a_row_holds_within_its_limit(planned: int, limit: float | None, holds: bool) -> None:
    row = Row(what="x", planned=planned * MIB, real=100 * MIB, limit=limit)

    assert holds == row.holds
    assert ("holds" if holds else "DOES NOT HOLD") == list(lines([row]))[-1]


def real_like(plan: Plan) -> dict[str, Any]:
    """What `measure` would give on a GPU on which everything comes out as planned."""
    memory, details = plan.memory, {"device_reserved_bytes": 0, "device_used_bytes": 600 * MIB}

    def phase(name: str, before: int, after: int, **own: int) -> dict[str, Any]:
        bounds = {"device_bytes_before": before, "device_bytes_after": after}
        return {"phase": name, **bounds, "details": details | own}

    return {
        "phases": [
            phase("load_target", 0, 0, weight_bytes=memory.target_weight_bytes),
            phase("load_draft", 0, 0, weight_bytes=memory.draft_weight_bytes),
            phase("kv_cache", 0, 0, kv_bytes=memory.kv_bytes, draft_kv_bytes=memory.draft_kv_bytes),
            phase("attention_backend", 0, 0),
            phase("cuda_graphs", 0, 32 * 32 * MIB),
        ],
        "built_bytes": 32 * 32 * MIB + memory.feature_bytes,
        "served_bytes": memory.total_bytes + 34 * 32 * MIB,
        "peak_bytes": memory.total_bytes + 35 * 32 * MIB,
        "used_bytes": memory.needed_bytes,
    }


def test_on_a_gpu_the_sums_are_judged_and_every_estimate_is_shown() -> None:
    config = load_run(["+experiment=topk1_v2", "model=llama31_8b"]).config
    facts: Facts = load_facts(FACTS)
    plan = make_plan(config, facts)

    found = {row.what: row for row in compare(config, facts, plan, real_like(plan))}

    judged = {what for what, row in found.items() if row.limit is not None}
    assert {"allocated, served", "used in all"} < judged
    assert {"graphs, held by torch", "a pass's workspace", "runtime"} < set(found) - judged
    assert found["graphs, held by torch"].difference == pytest.approx(51.3 / 1024, abs=0.001)
    assert 0.0 == found["used in all"].difference
    assert all(row.holds for row in found.values())
