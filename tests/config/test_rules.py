from collections.abc import Sequence
from itertools import product

import pytest

from specserve.config.compose import compose_tree
from specserve.config.rules import RULES, Rule, tree_capacity
from specserve.config.run import RunConfig
from specserve.errors import Problem


def _run(*overrides: str) -> RunConfig:
    return RunConfig.model_validate(compose_tree(overrides))


def _found(overrides: Sequence[str]) -> list[Problem]:
    run = _run(*overrides)
    return [problem for rule in RULES for problem in rule.find(run)]


@pytest.mark.parametrize("rule", RULES, ids=[rule.find.__name__ for rule in RULES])
@pytest.mark.parametrize("experiment", ["topk1_v2", "topk4_v1", "kimi_k25_int4_topk1_v2"])
def test_a_rule_reads_only_the_sections_that_it_declares(rule: Rule, experiment: str) -> None:
    """Otherwise it would fail, not report, while another section is invalid."""
    run = _run(f"+experiment={experiment}")
    sections = {name: getattr(run, name) for name in rule.reads}

    assert [] == list(rule.find(RunConfig.model_construct(**sections)))


def _tree_nodes(num_steps: int, topk: int) -> int:
    """Count by drawing the tree: every kept branch of a step offers topk children."""
    nodes, beams = 1, 1
    for _ in range(num_steps):
        nodes += beams * topk
        beams = topk
    return nodes


@pytest.mark.parametrize(("num_steps", "topk"), list(product(range(1, 9), range(1, 9))))
def test_a_tree_holds_what_its_steps_draw(num_steps: int, topk: int) -> None:
    assert _tree_nodes(num_steps, topk) == tree_capacity(num_steps, topk)


@pytest.mark.parametrize(
    ("overrides", "accepted"),
    [
        (["speculation.num_draft_tokens=4"], True),
        (["speculation.num_draft_tokens=5"], False),
        (["speculation.num_draft_tokens=3"], False),
        (["speculation.num_steps=5", "speculation.num_draft_tokens=6"], True),
        (["speculation.topk=4", "speculation.num_draft_tokens=37"], True),
        (["speculation.topk=4", "speculation.num_draft_tokens=38"], False),
        (["speculation.topk=4", "speculation.num_draft_tokens=2"], True),
        (["policy.disable_above=6"], True),
        (["policy.disable_above=5"], False),
        (["policy=depth_schedule"], True),
        (["policy=depth_schedule", "speculation.num_steps=2"], False),
        (["policy=acceptance"], True),
        (["policy=acceptance", "policy.margin=0.7"], True),
        (["policy=acceptance", "policy.margin=0.71"], False),
        (["policy=cost_model", "policy.calibration=/x.json"], True),
        (["speculation=off"], False),
        (["speculation=off", "policy=off"], True),
        (["speculation=off", "policy=off", "quantization.draft=inherit"], True),
        (["speculation=off", "policy=off", "quantization.draft=int4"], False),
        (["quantization.draft=int4"], True),
        (["attention=sdpa"], True),
        (["attention=triton"], False),
        (["engine=sglang", "attention=triton"], True),
        (["engine=sglang", "attention=sdpa"], False),
        (["engine=sglang", "parallel=tp8"], True),
        (["parallel=tp8"], False),
        (["parallel.num_nodes=2"], False),
        (["engine=sglang", "parallel=tp8", "parallel.num_nodes=2"], True),
        (["engine=sglang", "parallel=tp8", "parallel.num_nodes=3"], False),
        (["engine=sglang", "quantization=compressed_tensors_int4"], True),
        (["quantization=compressed_tensors_int4"], False),
        (["cuda_graph.batch_sizes=[1,2,8]"], True),
        (["cuda_graph.batch_sizes=[1,1]"], False),
        (["cuda_graph.batch_sizes=[]"], False),
        (["model.context_length=512", "scheduler.max_kv_tokens=512"], True),
        (["model.context_length=512", "scheduler.max_kv_tokens=511"], False),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_the_boundary_of_each_rule(overrides: list[str], accepted: bool) -> None:
    assert accepted == (not _found(["+experiment=topk1_v2", *overrides]))


def test_a_chain_is_mended_on_either_side() -> None:
    [problem] = _found(["+experiment=topk1_v2", "speculation.num_draft_tokens=6"])

    assert "set speculation.num_draft_tokens=4, or speculation.num_steps=5" == problem.fix


def test_no_depth_is_offered_that_would_be_refused() -> None:
    [problem] = _found(["+experiment=topk1_v2", "speculation.num_draft_tokens=40"])

    assert "set speculation.num_draft_tokens=4" == problem.fix
