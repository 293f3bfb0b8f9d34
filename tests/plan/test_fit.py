"""B01: what does not fit is refused beforehand, and the advice, applied, fits."""

from collections.abc import Callable

import pytest

from specserve.errors import Problem
from specserve.facts import Facts
from specserve.plan import Plan
from specserve.plan.fit import gib, itemized
from specserve.plan.memory import Allocation

MakePlan = Callable[..., Plan]
MakeProblems = Callable[..., list[Problem]]
Advice = Callable[[Problem], list[list[str]]]


def with_memory(facts: Facts, num_bytes: int) -> Facts:
    """The machine with devices of another size."""
    gpus = tuple(gpu.model_copy(update={"memory_bytes": num_bytes}) for gpu in facts.machine.gpus)
    machine = facts.machine.model_copy(update={"gpus": gpus, "memory_bytes": num_bytes})
    return facts.model_copy(update={"machine": machine})


@pytest.mark.parametrize("while_off", ["warm", "refill"])
@pytest.mark.parametrize("memory", [22 * 2**30, 24 * 2**30, 28 * 2**30])
def test_every_advised_change_makes_the_plan_fit(
    h200: Facts,
    plan_of: MakePlan,
    problems_of: MakeProblems,
    advice: Advice,
    memory: int,
    while_off: str,
) -> None:
    facts = with_memory(h200, memory)
    overrides = [f"policy.while_off={while_off}", "scheduler.max_running_requests=64"]

    [problem] = problems_of(facts, *overrides)

    assert "scheduler.max_running_requests" == problem.key
    assert advice(problem)
    for settings in advice(problem):
        assert plan_of(facts, *overrides, *settings).memory.total_bytes <= int(memory * 0.9)


def test_the_advised_number_of_requests_is_the_largest(
    h200: Facts, problems_of: MakeProblems, advice: Advice
) -> None:
    facts = with_memory(h200, 26 * 2**30)
    [problem] = problems_of(facts, "scheduler.max_running_requests=64")
    rows = int(advice(problem)[0][0].split("=")[1])

    [still] = problems_of(facts, f"scheduler.max_running_requests={rows + 1}")

    assert f"set scheduler.max_running_requests={rows}," in still.fix


def test_the_problem_lists_every_part_of_the_plan(h200: Facts, problems_of: MakeProblems) -> None:
    [problem] = problems_of(with_memory(h200, 28 * 2**30), "scheduler.max_running_requests=64")

    for part in ("target weights", "draft weights", "kv", "draft kv", "features"):
        assert f"{part} " in problem.expected
    assert "NVIDIA H200 with 28.00 GiB, of which graphs, workspace and runtime" in problem.expected


def test_weights_that_leave_no_room_advise_quantizing(
    h200: Facts, plan_of: MakePlan, problems_of: MakeProblems
) -> None:
    facts = with_memory(h200, 16 * 2**30)

    [problem] = problems_of(facts, "scheduler.max_running_requests=4")

    assert "model.path" == problem.key
    assert "quantization=int8" in problem.fix
    quantized = plan_of(facts, "scheduler.max_running_requests=4", "quantization=int8")
    assert quantized.memory.total_bytes <= int(16 * 2**30 * 0.9)


def test_quantized_weights_that_leave_no_room_need_another_device(
    h200: Facts, problems_of: MakeProblems
) -> None:
    [problem] = problems_of(with_memory(h200, 2**30), "quantization=int4")

    assert "take a device with more memory" == problem.fix


def test_host_memory_counts_on_a_cpu(cpu: Facts, problems_of: MakeProblems) -> None:
    [problem] = problems_of(with_memory(cpu, 2**33))

    assert "model.path" == problem.key


def test_sglang_is_told_the_context_that_fits(
    h200: Facts, plan_of: MakePlan, problems_of: MakeProblems, advice: Advice
) -> None:
    facts = with_memory(h200, int(17.6 * 2**30))

    [problem] = problems_of(facts, "engine=sglang")

    assert "model.context_length" == problem.key
    [settings] = advice(problem)
    mended = plan_of(facts, "engine=sglang", *settings)
    assert mended.memory.total_bytes <= int(17.6 * 2**30 * 0.9)


def test_sglang_is_told_the_pool_that_fits(
    h200: Facts, plan_of: MakePlan, problems_of: MakeProblems, advice: Advice
) -> None:
    asked = "scheduler.max_kv_tokens=4000000"

    [problem] = problems_of(h200, "engine=sglang", asked)

    assert "scheduler.max_kv_tokens" == problem.key
    [settings] = advice(problem)
    mended = plan_of(h200, "engine=sglang", *settings)
    assert settings == [f"scheduler.max_kv_tokens={mended.scheduler.max_kv_tokens}"]


def test_sglang_is_told_to_spread_weights_that_leave_no_room(
    h200: Facts, problems_of: MakeProblems
) -> None:
    [problem] = problems_of(with_memory(h200, 10 * 2**30), "engine=sglang")

    assert "run on 2 such GPUs, the fewest that hold it" in problem.fix


def test_parts_that_are_empty_are_not_listed() -> None:
    memory = Allocation(target_weights=3 * 2**30, draft_weights=0, kv=2**30, draft_kv=0, features=0)

    assert "4.00 GiB (target weights 3.00 GiB, kv 1.00 GiB)" == itemized(memory)
    assert "1,024.00 GiB" == gib(2**40)
