"""The part of a plan that only engine=sglang reads."""

from collections.abc import Iterator, Sequence

from specserve.checkpoint.quantization import stored_quantization
from specserve.checkpoint.rules import CheckedPair
from specserve.config.engine import SglangEngineConfig
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.facts import Gpu
from specserve.plan.values import SglangPlan
from specserve.rule_ids import RuleId

# Compute capability from which on a GPU calculates in these numbers. Below it SGLang unpacks the
# weights for 16-bit arithmetic (its Marlin kernels), without a word.
_LEAST_CAPABILITY = {"fp8": (8, 9), "nvfp4": (10, 0)}
_GENERATION = {"fp8": "Ada, Hopper or Blackwell", "nvfp4": "Blackwell"}


def plan_sglang(config: RunConfig, pair: CheckedPair) -> SglangPlan | None:
    """None for another engine."""
    if not isinstance(config.engine, SglangEngineConfig):
        return None
    return SglangPlan(
        engine=config.engine,
        speculation=config.speculation,
        stored_quantized=stored_quantization(pair.target.config) is not None,
        log_level=config.logging.level,
        step_limit_seconds=config.scheduler.step_limit_seconds,
    )


def capability(gpu: Gpu) -> tuple[int, int] | None:
    """Compute capability as two numbers; None where it isn't known."""
    major, _, minor = gpu.compute_capability.partition(".")
    return (int(major), int(minor)) if major.isdecimal() and minor.isdecimal() else None


def number_problems(config: RunConfig, gpus: Sequence[Gpu]) -> Iterator[Problem]:
    """Number formats that the GPUs cannot calculate in."""
    if not isinstance(config.engine, SglangEngineConfig) or config.engine.device == "cpu":
        return
    for key, scheme in (
        ("quantization.kind", config.quantization.kind),
        ("quantization.draft", config.quantization.draft),
    ):
        least = _LEAST_CAPABILITY.get(scheme)
        lacking = [gpu for gpu in gpus if least and (capability(gpu) or least) < least]
        if lacking:
            yield Problem(
                rule=RuleId.NUMBERS_WITHOUT_HARDWARE,
                key=key,
                value=scheme,
                expected=f"numbers that {lacking[0].name} calculates in: its compute capability is "
                f"{lacking[0].compute_capability}, and {scheme} needs {_GENERATION[scheme]}",
                fix="set quantization.draft=none"
                if key.endswith("draft")
                else "set quantization=none, or take a checkpoint in awq or gptq",
            )
