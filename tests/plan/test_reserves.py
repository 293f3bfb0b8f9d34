from collections.abc import Callable

import pytest

from specserve.config.load import load_run
from specserve.facts import Facts
from specserve.plan import MemoryRow, Plan, make_plan

MakePlan = Callable[..., Plan]
MIB = 2**20


def row(plan: Plan, what: str) -> MemoryRow:
    [found] = [one for one in plan.memory.rows if one.what == what]
    return found


def test_every_captured_state_has_a_row(h200: Facts, plan_of: MakePlan) -> None:
    assert ["graphs_plain", "graphs_verify", "graphs_draft"] == [
        one.what for one in plan_of(h200).memory.rows if one.what.startswith("graphs")
    ]
    assert ["graphs_plain"] == [
        one.what
        for one in plan_of(h200, "speculation=off", "policy=off").memory.rows
        if one.what.startswith("graphs")
    ]


def test_reserves_are_estimates_and_say_of_what(h200: Facts, plan_of: MakePlan) -> None:
    for what in ("graphs_verify", "workspace", "runtime"):
        assert "estimated" == row(plan_of(h200), what).known
    assert "25 graphs: 20.1 MiB of inputs" in row(plan_of(h200), "graphs_verify").basis


def test_only_as_many_requests_as_the_policy_lets_speculate_are_verified_at_once(
    h200: Facts, plan_of: MakePlan
) -> None:
    few = row(plan_of(h200, "scheduler.max_running_requests=64"), "workspace")
    all_of_them = row(
        plan_of(h200, "scheduler.max_running_requests=64", "policy=always"), "workspace"
    )

    logits = 128256 * (2 + 24)
    assert (4 * 64 - 64) * logits == all_of_them.num_bytes - few.num_bytes


def test_an_older_gpu_has_smaller_workspaces(h200: Facts, plan_of: MakePlan) -> None:
    gpus = tuple(gpu.model_copy(update={"compute_capability": "8.0"}) for gpu in h200.machine.gpus)
    machine = h200.machine.model_copy(update={"gpus": gpus})
    older = h200.model_copy(update={"machine": machine})

    saved = row(plan_of(h200), "workspace").num_bytes - row(plan_of(older), "workspace").num_bytes

    assert 34 * (32 * MIB - 8 * MIB - 128 * 1024) == saved


@pytest.mark.parametrize(
    ("overrides", "num_workspaces"),
    [([], 34), (["cuda_graph=off"], 2), (["scheduler=sync", "cuda_graph=off"], 1)],
)
def test_each_stream_and_thread_keeps_a_workspace(
    h200: Facts, plan_of: MakePlan, overrides: list[str], num_workspaces: int
) -> None:
    assert (
        f"{32 * num_workspaces:,} MiB of cuBLAS"
        in row(plan_of(h200, *overrides), "workspace").basis
    )


def test_a_cpu_has_no_graphs_and_no_cublas(cpu: Facts, plan_of: MakePlan) -> None:
    plan = plan_of(cpu)

    assert 0 == plan.memory.bytes_of("graphs_plain", "graphs_verify", "graphs_draft")
    assert "cuBLAS" not in row(plan, "workspace").basis


def test_gpus_that_share_layers_have_nccls_buffers(kimi: Facts) -> None:
    shared = make_plan(load_run(["+experiment=kimi_k25_int4_topk1_v2"]).config, kimi)

    assert "NCCL" in row(shared, "runtime").basis
