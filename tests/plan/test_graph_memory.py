"""Graphs are counted as the torch engine captures them, and as a GPU has held them."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from specserve.config.load import load_run
from specserve.facts import Facts, gather_facts
from specserve.plan import Plan, make_plan
from specserve.plan.graph_memory import (
    captured_spans,
    draft_widths,
    sglang_graphs,
    torch_graphs,
    verify_widths,
)
from specserve.torch_engine import graphs, passes

LEDGER = Path(__file__).parents[2] / "bench/h200/ledger_gpu.jsonl"
CUBLAS = 32 * 2**20
PLANS = [
    [],
    ["speculation=off", "policy=off"],
    ["speculation=eagle3_topk4", "policy=always", "scheduler=sync"],
    ["speculation.num_steps=5", "cuda_graph.batch_sizes=[1,3,16]"],
]


@pytest.mark.parametrize("row_tokens", [8, 256, 257, 1032, 2056, 8200])
def test_spans_are_the_engines(row_tokens: int) -> None:
    assert graphs.spans(row_tokens) == captured_spans(row_tokens)


@pytest.mark.parametrize("overrides", PLANS)
def test_graphs_are_as_many_as_the_engine_captures(
    h200: Facts, plan_of: Callable[..., Plan], overrides: list[str]
) -> None:
    plan = plan_of(h200, *overrides)
    widths = {"plain": {1}}
    if plan.speculation is not None:
        assert passes.verify_widths(plan.speculation) == verify_widths(plan.speculation)
        assert passes.draft_widths(plan.speculation) == draft_widths(plan.speculation)
        widths |= {"verify": verify_widths(plan.speculation)}
        widths |= {"draft": draft_widths(plan.speculation)}
    sizes, tokens = plan.cuda_graph_batch_sizes, plan.scheduler.row_tokens

    found = torch_graphs(plan.target, plan.speculation, sizes, tokens)

    assert {
        state: len(graphs.pass_sizes(sizes, queries, tokens)) for state, queries in widths.items()
    } == {one.state: one.num_graphs for one in found}


def test_what_graphs_held_on_an_h200_is_what_is_counted() -> None:
    """The demo pair's recorded build: workspaces of 32 streams, and the tensors of the graphs."""
    records = [json.loads(line) for line in LEDGER.read_text().splitlines()]
    [done] = [r for r in records if (r["phase"], r["event"]) == ("cuda_graphs", "done")]
    grown = done["device_bytes_after"] - done["device_bytes_before"]
    config = load_run(["+experiment=topk1_v2", "engine.device=cpu"]).config
    plan = make_plan(config, gather_facts(config))
    assert plan.speculation is not None

    found = torch_graphs(
        plan.target,
        plan.speculation.model_copy(update={"depths": (3,)}),  # all that a threshold chooses
        tuple(done["details"]["batch_sizes"]),
        plan.scheduler.row_tokens,
    )

    assert done["details"]["num_graphs"] == {one.state: one.num_graphs for one in found}
    held = sum(one.tensor_bytes for one in found)
    assert held == pytest.approx(grown - 32 * CUBLAS, rel=0.001)


def test_sglang_captures_each_state_once_for_a_batch_size_and_verify_for_a_depth(
    h200: Facts, plan_of: Callable[..., Plan]
) -> None:
    schedule = "policy.schedule=[{up_to:4,num_steps:3},{up_to:8,num_steps:1}]"
    plan = plan_of(h200, "engine=sglang", "policy=depth_schedule", schedule)
    sizes = plan.cuda_graph_batch_sizes

    found = sglang_graphs(plan.target, plan.speculation, sizes)

    assert {"plain": len(sizes), "verify": 2 * len(sizes), "draft": 4 * len(sizes)} == {
        one.state: one.num_graphs for one in found
    }


def test_without_graphs_nothing_is_kept(h200: Facts, plan_of: Callable[..., Plan]) -> None:
    plan = plan_of(h200, "cuda_graph=off")

    assert () == torch_graphs(plan.target, plan.speculation, (), plan.scheduler.row_tokens)
    assert () == sglang_graphs(plan.target, plan.speculation, ())
