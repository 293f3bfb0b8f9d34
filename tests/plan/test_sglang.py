from collections.abc import Callable

import pytest

from specserve.config.load import load_run
from specserve.errors import Problem
from specserve.facts import Facts, Gpu
from specserve.plan import Plan, machine_problems, make_plan
from specserve.plan.sglang import capability

MakePlan = Callable[..., Plan]
LLAMA = ("model=llama31_8b", "engine=sglang")


def _on(facts: Facts, *capabilities: str) -> Facts:
    gpus = tuple(Gpu(name=f"G{c}", memory_bytes=2**38, compute_capability=c) for c in capabilities)
    return facts.model_copy(update={"machine": facts.machine.model_copy(update={"gpus": gpus})})


def _problems(facts: Facts, *overrides: str) -> list[Problem]:
    return list(machine_problems(load_run([*LLAMA, *overrides]).config, facts))


@pytest.mark.parametrize(
    ("found", "expected"), [("9.0", (9, 0)), ("12.1", (12, 1)), ("unknown", None), ("", None)]
)
def test_a_capability_is_two_numbers(found: str, expected: tuple[int, int] | None) -> None:
    gpu = Gpu(name="G", memory_bytes=1, compute_capability=found)

    assert expected == capability(gpu)


@pytest.mark.parametrize(
    ("capability", "schemes"),
    [
        ("8.0", []),
        ("8.9", ["fp8"]),
        ("9.0", ["fp8"]),
        ("10.0", ["fp8", "nvfp4"]),
        ("12.0", ["fp8", "nvfp4"]),
    ],
)
def test_which_gpu_calculates_in_which_numbers(
    h200: Facts, capability: str, schemes: list[str]
) -> None:
    """Elsewhere SGLang would unpack the weights for 16-bit arithmetic, without a word."""
    facts = _on(h200, capability)
    accepted = [s for s in ("fp8", "nvfp4") if not _problems(facts, f"quantization={s}")]

    assert schemes == accepted


def test_the_drafts_numbers_are_asked_too(h200: Facts) -> None:
    overrides = ("speculation=eagle3_topk1", "policy=always", "quantization.draft=fp8")
    [problem] = _problems(_on(h200, "8.6"), *overrides)

    assert "quantization.draft" == problem.key
    assert [] == _problems(_on(h200, "8.6"), *overrides, problem.fix.removeprefix("set "))


def test_one_gpu_that_lacks_them_is_enough(h200: Facts) -> None:
    [problem] = _problems(_on(h200, "9.0", "8.0"), "quantization=fp8")

    assert "G8.0" in problem.expected


def test_a_gpu_of_unknown_make_and_a_cpu_are_not_judged(h200: Facts) -> None:
    assert [] == _problems(_on(h200, "unknown"), "quantization=fp8")
    assert [] == _problems(_on(h200, "8.0"), "quantization=fp8", "engine.device=cpu")


@pytest.mark.parametrize(
    ("capability", "accepted"), [("8.0", True), ("9.0", True), ("10.0", False), ("12.0", False)]
)
def test_fa3_has_no_kernel_on_blackwell(h200: Facts, capability: str, accepted: bool) -> None:
    """Neither on SM100 nor on SM120, the workstation's."""
    facts = _on(h200, capability)
    found = _problems(facts, "attention=fa3")

    assert accepted == (not found)
    for problem in found:
        first = problem.fix.removeprefix("choose ").split(", or ")[0]
        assert [] == _problems(facts, first)


@pytest.mark.parametrize("capability", ["10.0", "12.0"])
def test_auto_never_takes_what_the_gpu_lacks(
    h200: Facts, plan_of: MakePlan, capability: str
) -> None:
    assert "flashinfer" == plan_of(_on(h200, capability), "engine=sglang").attention


def test_a_cpu_serves_sglang_if_it_is_asked_to(cpu: Facts, plan_of: MakePlan) -> None:
    plan = plan_of(cpu, "engine=sglang", "engine.device=cpu")

    assert ("cpu", "intel_amx", ()) == (plan.device, plan.attention, plan.cuda_graph_batch_sizes)


def test_the_part_of_sglang_says_what_only_it_reads(h200: Facts, plan_of: MakePlan) -> None:
    plan = plan_of(h200, "engine=sglang", "logging.level=debug", "scheduler.step_limit_seconds=5")

    assert plan.sglang is not None
    assert ("debug", 5.0, False) == (
        plan.sglang.log_level,
        plan.sglang.step_limit_seconds,
        plan.sglang.stored_quantized,
    )


def test_a_stored_form_is_known(kimi: Facts) -> None:
    run = load_run(["+experiment=kimi_k25_int4_topk1_v2"]).config

    part = make_plan(run, kimi).sglang

    assert part is not None
    assert part.stored_quantized


def test_another_engine_has_no_such_part(h200: Facts, plan_of: MakePlan) -> None:
    assert plan_of(h200).sglang is None
