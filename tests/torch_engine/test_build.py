from pathlib import Path

import pytest
from torch import nn

from specserve.config.load import load_run
from specserve.errors import PhaseError
from specserve.facts import gather_facts
from specserve.plan import Plan, make_plan
from specserve.testing.checkpoints import write_draft, write_target
from specserve.torch_engine.build import build, free_weights, no_graphs_reason, weight_bytes
from specserve.worker.phases import WORKER_PHASES, Phase, PhaseRecord, PhaseRunner


@pytest.fixture(scope="module")
def plan(tmp_path_factory: pytest.TempPathFactory) -> Plan:
    folder = tmp_path_factory.mktemp("pair")
    target = write_target(folder / "target", architecture="llama")
    draft = write_draft(folder / "draft", target_folder=target)
    overrides = [
        "speculation=eagle3_topk4",
        "policy=always",
        f"model.path={target}",
        f"model.draft_path={draft}",
        "scheduler.max_running_requests=2",
        "engine.device=cpu",
        "engine.num_threads=1",
    ]
    run = load_run(overrides, []).config
    return make_plan(run, gather_facts(run))


def _plain(plan: Plan) -> Plan:
    memory = plan.memory.replaced("draft_kv", 0)
    return plan.model_copy(update={"speculation": None, "memory": memory})


def test_a_build_records_every_phase_and_what_it_made(plan: Plan) -> None:
    records: list[PhaseRecord] = []

    worker = build(plan, PhaseRunner(emit=records.append))

    details = {record.phase: record.details for record in records if record.event != "start"}
    assert list(WORKER_PHASES) == list(details)
    assert plan.memory.target_weight_bytes == details[Phase.LOAD_TARGET]["weight_bytes"]
    assert plan.memory.draft_weight_bytes == details[Phase.LOAD_DRAFT]["weight_bytes"]
    assert ["embed_tokens"] == details[Phase.LOAD_DRAFT]["borrowed"]
    assert {
        "kv_bytes": plan.memory.kv_bytes,
        "planned_kv_bytes": plan.memory.kv_bytes,
        "draft_kv_bytes": plan.memory.draft_kv_bytes,
        "planned_draft_kv_bytes": plan.memory.draft_kv_bytes,
    } == details[Phase.KV_CACHE]
    passes = ("prefill", "decode", "verify", "draft extend", "draft step")
    assert ("sdpa", passes) == (worker.attention.backend, worker.attention.passes)
    assert "computes on the CPU" in details[Phase.CUDA_GRAPHS]["reason"]


def test_without_a_draft_its_phase_is_skipped_with_the_reason(plan: Plan) -> None:
    records: list[PhaseRecord] = []

    worker = build(_plain(plan), PhaseRunner(emit=records.append))

    (skipped,) = [r for r in records if (r.phase, r.event) == (Phase.LOAD_DRAFT, "skipped")]
    assert "has no draft" in skipped.details["reason"]
    assert (None, None) == (worker.draft, worker.caches.draft)
    assert ("prefill", "decode") == worker.attention.passes


def test_caches_larger_than_planned_fail_and_undo_the_weights(plan: Plan) -> None:
    memory = plan.memory.replaced("kv", plan.memory.kv_bytes - 1)
    records: list[PhaseRecord] = []

    with pytest.raises(PhaseError, match=r"kv_cache failed: .*larger than planned"):
        build(plan.model_copy(update={"memory": memory}), PhaseRunner(emit=records.append))

    assert [Phase.LOAD_DRAFT, Phase.LOAD_TARGET, Phase.ATTRIBUTES] == [
        record.phase for record in records if record.event == "undone"
    ]


def test_a_checkpoint_that_vanished_is_named_with_its_phase(plan: Plan, tmp_path: Path) -> None:
    target = plan.target.model_copy(update={"path": str(tmp_path / "gone")})

    with pytest.raises(PhaseError, match=r"load_target failed: .*gone"):
        build(plan.model_copy(update={"target": target}), PhaseRunner(emit=lambda record: None))


def test_freed_weights_hold_no_memory() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.BatchNorm1d(8))
    assert weight_bytes(model) > 0

    free_weights(model)

    assert 0 == weight_bytes(model)


def test_borrowed_weights_are_counted_once() -> None:
    lender, borrower = nn.Linear(8, 8), nn.Linear(8, 8)
    borrower.weight = lender.weight

    assert 4 * (64 + 8) == weight_bytes(lender)
    assert 4 * 8 == weight_bytes(borrower, besides=lender)


def test_a_gpu_whose_graphs_are_off_says_so(plan: Plan) -> None:
    assert "cuda_graph: off" == no_graphs_reason(plan.model_copy(update={"device": "cuda"}))
