from collections.abc import Callable

import pytest

from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.facts import Facts, Gpu
from specserve.plan import Plan, machine_problems

MakePlan = Callable[..., Plan]
MakeProblems = Callable[..., list[Problem]]


def with_gpus(facts: Facts, number: int, capability: str = "9.0") -> Facts:
    gpu = Gpu(name="G", memory_bytes=2**38, compute_capability=capability)
    machine = facts.machine.model_copy(update={"gpus": (gpu,) * number})
    return facts.model_copy(update={"machine": machine})


def with_torch(facts: Facts, version: str) -> Facts:
    return facts.model_copy(update={"versions": facts.versions | {"torch": version}})


def test_auto_takes_a_gpu_if_there_is_one(h200: Facts, cpu: Facts, plan_of: MakePlan) -> None:
    assert ("cuda", "cpu") == (plan_of(h200).device, plan_of(cpu).device)


def test_a_torch_without_cuda_computes_on_the_cpu_and_says_why(
    h200: Facts, plan_of: MakePlan
) -> None:
    plan = plan_of(with_torch(h200, "2.13.0+cpu"))

    assert "cpu" == plan.device
    assert ["torch 2.13.0+cpu is built without CUDA"] == [
        a.reason for a in plan.adjustments if a.key == "engine.device"
    ]


def test_a_device_that_was_asked_for_is_kept_without_an_adjustment(
    h200: Facts, plan_of: MakePlan
) -> None:
    plan = plan_of(h200, "engine.device=cpu")

    assert "cpu" == plan.device
    assert "engine.device" not in {a.key for a in plan.adjustments}


@pytest.mark.parametrize(
    ("version", "found"),
    [("2.13.0", "no GPU that is visible"), ("2.13.0+cpu", "no GPU that is visible")],
)
def test_cuda_without_a_gpu_is_refused(
    cpu: Facts, problems_of: MakeProblems, plan_of: MakePlan, version: str, found: str
) -> None:
    facts = with_torch(cpu, version)

    [problem] = problems_of(facts, "engine.device=cuda")

    assert found in problem.expected
    assert "set engine.device=cpu" == problem.fix
    assert "cpu" == plan_of(facts, "engine.device=cpu").device


def test_cuda_with_a_cpu_build_of_torch_is_refused_as_that(
    h200: Facts, problems_of: MakeProblems
) -> None:
    [problem] = problems_of(with_torch(h200, "2.13.0+cpu"), "engine.device=cuda")

    assert "torch 2.13.0+cpu, built without CUDA" in problem.expected


def test_threads_are_all_cores_or_what_was_asked_for(cpu: Facts, plan_of: MakePlan) -> None:
    assert 7 == plan_of(cpu).num_threads
    assert 3 == plan_of(cpu, "engine.num_threads=3").num_threads


def test_more_threads_than_cores_are_kept_and_warned_of(cpu: Facts, plan_of: MakePlan) -> None:
    plan = plan_of(cpu, "engine.num_threads=9")

    assert 9 == plan.num_threads
    assert any("engine.num_threads=9 on 8 cores" in warning.text for warning in plan.warnings)


def test_sglang_needs_the_gpus_that_it_spreads_over(
    h200: Facts, cpu: Facts, problems_of: MakeProblems
) -> None:
    [one_of_two] = problems_of(h200, "engine=sglang", "parallel=tp2")
    [none_of_two] = problems_of(cpu, "engine=sglang", "parallel=tp2")

    assert "2 visible GPUs on this machine for engine=sglang, found 1" in one_of_two.expected
    assert one_of_two.fix.startswith("set parallel.tensor_parallel=1, or ")
    assert "set" not in none_of_two.fix
    assert "--facts FILE" in none_of_two.fix


@pytest.mark.parametrize(("visible", "advised"), [(1, 1), (3, 2), (6, 4), (7, 4)])
def test_the_advised_parallelism_is_a_power_of_two_that_fits(
    h200: Facts, problems_of: MakeProblems, plan_of: MakePlan, visible: int, advised: int
) -> None:
    facts = with_gpus(h200, visible)

    [problem] = problems_of(facts, "engine=sglang", "parallel=tp8")

    assert f"set parallel.tensor_parallel={advised}," in problem.fix
    mended = plan_of(facts, "engine=sglang", f"parallel.tensor_parallel={advised}")
    assert advised == mended.tensor_parallel


def test_each_node_brings_its_share_of_the_gpus(h200: Facts, plan_of: MakePlan) -> None:
    plan = plan_of(with_gpus(h200, 4), "engine=sglang", "parallel=tp8", "parallel.num_nodes=2")

    assert (8, 2) == (plan.tensor_parallel, plan.num_nodes)


@pytest.mark.parametrize(
    ("capability", "attention"), [("9.0", "fa3"), ("8.0", "flashinfer"), ("10.0", "flashinfer")]
)
def test_sglangs_attention_follows_the_gpus_generation(
    h200: Facts, plan_of: MakePlan, capability: str, attention: str
) -> None:
    plan = plan_of(with_gpus(h200, 1, capability), "engine=sglang")

    assert attention == plan.attention
    assert any(capability in a.reason for a in plan.adjustments if a.key == "attention.kind")


def test_an_attention_that_was_asked_for_is_kept(h200: Facts, plan_of: MakePlan) -> None:
    assert "triton" == plan_of(h200, "engine=sglang", "attention=triton").attention


def test_machine_problems_need_no_checkpoint(
    cpu: Facts, make_run: Callable[..., RunConfig]
) -> None:
    bare = cpu.model_copy(update={"target": None, "draft": None})
    run = make_run("engine=sglang", "parallel=tp2")

    assert ["parallel.tensor_parallel"] == [p.key for p in machine_problems(run, bare)]
