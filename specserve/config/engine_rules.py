"""Rules on what an engine has: drafters, policies, attention back-ends, number formats."""

from collections.abc import Iterator

from specserve.config.engine import SglangEngineConfig, TorchEngineConfig
from specserve.config.policy import AlwaysPolicy
from specserve.config.run import RunConfig
from specserve.config.speculation import (
    DflashSpeculation,
    Eagle3Speculation,
    MtpSpeculation,
    NgramSpeculation,
    NoSpeculation,
    StandaloneSpeculation,
)
from specserve.errors import Problem
from specserve.rule_ids import RuleId

_QUANTIZATION = {
    "torch": ("none", "int8", "int4"),
    "sglang": ("none", "fp8", "awq", "gptq", "nvfp4", "compressed_tensors_int4"),
}
_DRAFT_QUANTIZATION = {
    "torch": ("none", "inherit", "int8", "int4"),
    "sglang": ("none", "inherit", "fp8"),
}
# What each engine can quantize a draft to while it loads.
_WHILE_LOADING = {"torch": "int8", "sglang": "fp8"}


def drafter_of_the_engine(config: RunConfig) -> Iterator[Problem]:
    """The torch engine drafts with EAGLE-3 heads; SGLang's DFlash needs a GPU."""
    drafter = config.speculation
    if isinstance(config.engine, TorchEngineConfig):
        if not isinstance(drafter, NoSpeculation | Eagle3Speculation):
            yield Problem(
                rule=RuleId.DRAFTER_OF_ANOTHER_ENGINE,
                key="speculation",
                value=drafter.kind,
                expected="off or eagle3, which the torch engine has",
                fix="choose engine=sglang, or speculation=off policy=off",
            )
    elif isinstance(drafter, DflashSpeculation) and config.engine.device == "cpu":
        yield Problem(
            rule=RuleId.DRAFTER_OF_ANOTHER_ENGINE,
            key="speculation",
            value=drafter.kind,
            expected="a drafter that SGLang has on a CPU; its DFlash needs a GPU",
            fix="set engine.device=cuda, or speculation=off policy=off",
        )


def policy_of_the_engine(config: RunConfig) -> Iterator[Problem]:
    """SGLang changes the depth of chains only, of EAGLE's family only; all else always drafts."""
    drafter = config.speculation
    if not isinstance(config.engine, SglangEngineConfig) or isinstance(drafter, NoSpeculation):
        return
    if isinstance(config.policy, AlwaysPolicy):
        return
    fix = "choose policy=always"
    if isinstance(drafter, NgramSpeculation | DflashSpeculation | StandaloneSpeculation):
        why = f"SGLang cannot change the depth of {drafter.kind} while it runs, nor switch it off"
    elif drafter.topk > 1:
        why = (
            f"SGLang cannot change the depth of a tree (topk={drafter.topk}) while it runs, nor "
            "switch it off"
        )
        fix += ", or set speculation.topk=1 speculation.num_draft_tokens=auto"
    else:
        return
    yield Problem(
        rule=RuleId.POLICY_NOT_STEERABLE,
        key="policy",
        value=config.policy.kind,
        expected=f"always: {why}",
        fix=fix,
    )


def attention_of_the_engine(config: RunConfig) -> Iterator[Problem]:
    """The torch engine computes attention by SDPA, SGLang by its kernels, on a GPU or a CPU."""
    engine, backend = config.engine, config.attention.kind
    on_a_cpu = isinstance(engine, SglangEngineConfig) and engine.device == "cpu"
    offered: tuple[str, ...]
    if isinstance(engine, TorchEngineConfig):
        offered, fix = ("auto", "sdpa"), "choose attention=auto, or engine=sglang"
    elif on_a_cpu:
        offered, fix = ("auto",), "choose attention=auto, or set engine.device=cuda"
    else:
        offered = ("auto", "fa3", "triton", "flashinfer")
        fix = "choose attention=auto, or engine=torch"
    if backend not in offered:
        yield Problem(
            rule=RuleId.ATTENTION_OF_ANOTHER_ENGINE,
            key="attention",
            value=backend,
            expected=f"{_listed(offered)}, which the {engine.kind} engine has"
            + (" on a CPU" if on_a_cpu else ""),
            fix=fix,
        )


def quantization_of_the_engine(config: RunConfig) -> Iterator[Problem]:
    """The torch engine quantizes in int while loading; SGLang in fp8, and it reads stored forms."""
    engine, scheme = config.engine.kind, config.quantization.kind
    if scheme not in _QUANTIZATION[engine]:
        other = "torch" if engine == "sglang" else "sglang"
        mine = "int4" if engine == "torch" else "fp8"
        yield Problem(
            rule=RuleId.QUANTIZATION_OF_ANOTHER_ENGINE,
            key="quantization",
            value=scheme,
            expected=f"{_listed(_QUANTIZATION[engine])}, which the {engine} engine has",
            fix=f"choose quantization={mine}, or engine={other}",
        )


def draft_quantization_of_the_engine(config: RunConfig) -> Iterator[Problem]:
    """As for the target; layers inside the target's checkpoint stay as they are stored."""
    engine, scheme, drafter = config.engine.kind, config.quantization.draft, config.speculation
    if isinstance(drafter, NoSpeculation | NgramSpeculation):
        return
    if scheme not in _DRAFT_QUANTIZATION[engine]:
        yield Problem(
            rule=RuleId.QUANTIZATION_OF_ANOTHER_ENGINE,
            key="quantization.draft",
            value=scheme,
            expected=f"{_listed(_DRAFT_QUANTIZATION[engine])}, which the {engine} engine has",
            fix=f"set quantization.draft=none, or quantization.draft={_WHILE_LOADING[engine]}",
        )
    elif isinstance(drafter, MtpSpeculation) and drafter.draft.path is None and scheme == "fp8":
        yield Problem(
            rule=RuleId.QUANTIZATION_OF_ANOTHER_ENGINE,
            key="quantization.draft",
            value=scheme,
            expected="none or inherit: the draft layers are stored in the target's checkpoint and "
            "stay as they are there",
            fix="set quantization.draft=inherit",
        )


def ngram_breadth(config: RunConfig) -> Iterator[Problem]:
    """The fewest continuations are no more than the most."""
    drafter = config.speculation
    if isinstance(drafter, NgramSpeculation) and drafter.min_breadth > drafter.max_breadth:
        yield Problem(
            rule=RuleId.NGRAM_BREADTH,
            key="speculation.min_breadth",
            value=drafter.min_breadth,
            expected=f"at most speculation.max_breadth, {drafter.max_breadth}",
            fix=f"set speculation.min_breadth={drafter.max_breadth}, "
            f"or speculation.max_breadth={drafter.min_breadth}",
        )


def _listed(options: tuple[str, ...]) -> str:
    return ", ".join(options[:-1]) + f" or {options[-1]}" if len(options) > 1 else options[0]
