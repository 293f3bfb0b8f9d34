"""The target's part of the plan: type, context, quantization, stop ids."""

from collections.abc import Iterator, Sequence

from specserve.checkpoint.architecture import ARCHITECTURES, architecture_name, text_config
from specserve.checkpoint.dtype import ActivationDtype, as_activation_dtype, stored_dtype
from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.quantization import draft_group_size, draft_scheme, group_size
from specserve.checkpoint.rules import CheckedPair
from specserve.config.paths import name_of_path
from specserve.config.run import RunConfig
from specserve.errors import Doubt, Problem
from specserve.facts import Facts, Gpu
from specserve.plan.execution import Device
from specserve.plan.notes import Notes
from specserve.plan.values import TargetPlan
from specserve.rule_ids import RuleId

_INT4_GROUPS: dict[Device, tuple[int, ...]] = {
    "cpu": (32, 64, 128),
    "cuda": (32, 64, 128, 256),
}
_INT4_CAPABILITY = 8  # the major number: Ampere
_FLOAT16_ON_A_CPU = Doubt(
    rule=RuleId.FLOAT16_ON_A_CPU,
    key="model.dtype",
    text="model.dtype=float16 on a CPU: no faster than float32, and it overflows",
)


def plan_target(
    config: RunConfig, facts: Facts, pair: CheckedPair, device: Device, notes: Notes
) -> TargetPlan:
    """The target as it will be loaded."""
    notes.refuse(_torchao_problems(config, facts))
    dtype = choose_dtype(config, pair, device, notes)
    if config.engine.kind == "torch":
        notes.refuse(_int4_problems(config, facts, device, dtype))
    name = architecture_name(pair.target.config)
    known = ARCHITECTURES.get(name or "")
    return TargetPlan(
        name=choose_name(config, notes),
        path=pair.target.path,
        config=pair.target.config,
        architecture=known.name if known else str(name),
        dtype=dtype,
        quantization=config.quantization.kind,
        quantization_group_size=group_size(config.quantization),
        num_layers=pair.size.num_layers,
        hidden_size=pair.size.hidden_size,
        num_kv_heads=1 if pair.size.mla else pair.size.num_kv_heads,
        head_dim=pair.size.kv_width if pair.size.mla else pair.size.head_dim,
        vocab_size=pair.size.vocab_size,
        context_length=choose_context_length(config, pair, notes),
        eos_token_ids=_eos_token_ids(pair.target, notes),
        trust_remote_code=config.model.trust_remote_code,
    )


def choose_name(config: RunConfig, notes: Notes) -> str:
    """`auto` names the model after its path, so that another path never serves as this one."""
    asked = config.model.name
    if asked != "auto":
        return asked
    name = name_of_path(config.model.path)
    notes.adjust("model.name", "auto", name, f"from model.path={config.model.path}")
    return name


def choose_dtype(
    config: RunConfig, pair: CheckedPair, device: Device, notes: Notes
) -> ActivationDtype:
    """One activation type for target and draft, decided before anything is loaded.

    `auto` is the target's stored type, but float32 in place of float16 on a CPU.
    """
    asked = config.model.dtype
    stored = stored_dtype(pair.target)
    reasons = []
    if asked != "auto":
        effective = asked
        if device == "cpu" and asked == "float16":
            notes.warn(_FLOAT16_ON_A_CPU)
    elif device == "cpu" and stored == "float16":
        effective = "float32"
        reasons.append("on a CPU float16 is no faster than float32, and it overflows")
    else:
        effective = as_activation_dtype(str(stored))
        reasons.append(f"the target is stored in {stored}")
    roles = [("target", stored), ("draft", stored_dtype(pair.draft.facts) if pair.draft else None)]
    reasons += [
        f"the {role} is stored in {kind} and is cast"
        for role, kind in roles
        if kind not in (None, effective)
    ]
    if reasons:
        notes.adjust("model.dtype", asked, effective, "; ".join(reasons))
    return effective


def choose_context_length(config: RunConfig, pair: CheckedPair, notes: Notes) -> int:
    """`auto` is the tightest limit of the two checkpoints."""
    asked = config.model.context_length
    if asked != "auto":
        return asked
    tightest = pair.context_limits[0]
    notes.adjust("model.context_length", "auto", tightest.tokens, tightest.source)
    return tightest.tokens


def _eos_token_ids(target: CheckpointFacts, notes: Notes) -> tuple[int, ...]:
    """The ids of generation_config.json, then those of config.json, each once."""
    ids: list[int] = []
    for source in (target.generation_config, target.config, text_config(target.config)):
        value = source.get("eos_token_id")
        ids += [i for i in (value if isinstance(value, list) else [value]) if type(i) is int]
    if not ids:
        notes.warn(
            Doubt(
                rule=RuleId.NO_STOP_TOKEN,
                key="model.path",
                text=f"{target.path} names no eos_token_id: a request ends at its stop strings or "
                "max_tokens only",
            )
        )
    return tuple(dict.fromkeys(ids))


def _torchao_problems(config: RunConfig, facts: Facts) -> list[Problem]:
    wanted = {config.quantization.kind, config.quantization.draft} & {"int8", "int4"}
    if not wanted or "torchao" in facts.versions:
        return []
    kind = config.quantization.kind
    key = "quantization.kind" if kind in wanted else "quantization.draft"
    return [
        Problem(
            rule=RuleId.NO_TORCHAO,
            key=key,
            value=kind if kind in wanted else config.quantization.draft,
            expected="the package torchao, which quantizes while loading; it is not installed",
            fix="run `pip install 'specserve[quantization]'`, or set quantization=none",
        )
    ]


def _int4_problems(
    config: RunConfig, facts: Facts, device: Device, dtype: ActivationDtype
) -> Iterator[Problem]:
    """What the 4-bit kernels of engine=torch demand of groups, type and GPU.

    That groups divide the inputs of every layer is checked with the checkpoints.
    """
    asked = config.quantization
    if "int4" not in (asked.kind, draft_scheme(asked)):
        return
    if device == "cuda" and dtype != "bfloat16":
        yield Problem(
            rule=RuleId.INT4_DTYPE,
            key="model.dtype",
            value=config.model.dtype,
            expected=f"bfloat16, in which int4 is computed on a GPU, not {dtype}",
            fix="set model.dtype=bfloat16",
        )
    if device == "cuda":
        yield from _too_old_for_int4(config, facts.machine.gpus[:1])
    kernels, group = _INT4_GROUPS[device], draft_group_size(asked)
    if group not in kernels:
        # A divisor of the group divides whatever the group divides.
        fitting = max(size for size in kernels if group % size == 0)
        yield Problem(
            rule=RuleId.INT4_WITHOUT_KERNEL,
            key="quantization.group_size",
            value=group,
            expected=f"{', '.join(map(str, kernels))}: the groups that have a 4-bit kernel on "
            f"{device}",
            fix=f"set quantization.group_size={fitting}",
        )


def _too_old_for_int4(config: RunConfig, gpus: Sequence[Gpu]) -> Iterator[Problem]:
    """A GPU without the kernel's tensor cores; none at all is told elsewhere."""
    of_target = config.quantization.kind == "int4"
    for gpu in gpus:
        major = gpu.compute_capability.partition(".")[0]
        if major.isdecimal() and int(major) < _INT4_CAPABILITY:
            yield Problem(
                rule=RuleId.INT4_GPU_TOO_OLD,
                key="quantization.kind" if of_target else "quantization.draft",
                value="int4",
                expected=f"none or int8 on {gpu.name}, whose compute capability is "
                f"{gpu.compute_capability}; the 4-bit kernel needs {_INT4_CAPABILITY}.0",
                fix="set quantization=int8" if of_target else "set quantization.draft=int8",
            )
