"""How weights are stored and how they will be held: the target's scheme, and the draft's own."""

from dataclasses import dataclass
from typing import Any, Literal, assert_never

from specserve.checkpoint.architecture import Dimensions, text_config
from specserve.config.quantization import (
    AwqQuantization,
    CompressedTensorsInt4,
    DraftQuantization,
    Fp8Quantization,
    GptqQuantization,
    Int4Quantization,
    Int8Quantization,
    NoQuantization,
    Nvfp4Quantization,
    QuantizationConfig,
)
from specserve.errors import Problem
from specserve.rule_ids import RuleId

DraftScheme = Literal["none", "int8", "int4", "fp8"]
# Schemes that a checkpoint is stored in, and that nothing is quantized to while it loads.
_StoredOnly = CompressedTensorsInt4 | AwqQuantization | GptqQuantization | Nvfp4Quantization


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredQuantization:
    """What a checkpoint's quantization_config says; None where it doesn't."""

    method: str
    num_bits: int | None
    group_size: int | None
    is_float: bool = False

    def __str__(self) -> str:
        number = "float" if self.is_float else "bits"
        return f"{self.method} ({self.num_bits} {number}, groups of {self.group_size})"

    @property
    def kind(self) -> str | None:
        """The `quantization.kind` that describes it; None if there is none."""
        if self.method == "fp8" or (self.is_float and self.num_bits == 8):
            return "fp8"
        if self.is_float and self.num_bits == 4:
            return "nvfp4"
        if self.method == "compressed-tensors":
            return "compressed_tensors_int4" if self.num_bits == 4 else None
        return self.method if self.method in ("awq", "gptq") else None


def stored_quantization(config: dict[str, Any]) -> StoredQuantization | None:
    """The checkpoint's own quantization section; None if its weights are plain."""
    section = config.get("quantization_config") or text_config(config).get("quantization_config")
    if not section:
        return None
    if not isinstance(section, dict):
        return StoredQuantization(method=str(section), num_bits=None, group_size=None)
    weights = _first_group(section)
    algorithm = str(section.get("quant_algo", "")).upper()  # modelopt's name for the numbers
    bits = {"FP8": 8, "NVFP4": 4}.get(algorithm)
    return StoredQuantization(
        method=str(section.get("quant_method", "an unnamed method")),
        num_bits=bits or _integer(weights.get("num_bits", section.get("bits"))),
        group_size=_integer(weights.get("group_size", section.get("group_size"))),
        is_float=bits is not None or weights.get("type") == "float",
    )


def target_problems(
    asked: QuantizationConfig, stored: StoredQuantization | None, size: Dimensions
) -> list[Problem]:
    """Whether the asked scheme fits what the target's checkpoint holds."""
    match asked:
        case NoQuantization():
            return [_stored_unasked(stored)] if stored else []
        case Int8Quantization():
            return [_stored_already(asked.kind, stored)] if stored else []
        case Int4Quantization():
            return [_stored_already(asked.kind, stored)] if stored else _group_problems(asked, size)
        case CompressedTensorsInt4():
            return _compressed_problems(asked, stored)
        case Fp8Quantization():
            return _form_problems(asked.kind, stored) if stored else []
        case AwqQuantization() | GptqQuantization() | Nvfp4Quantization():
            return _form_problems(asked.kind, stored)
        case _:
            assert_never(asked)


def draft_problems(
    asked: QuantizationConfig, stored: StoredQuantization | None, size: Dimensions
) -> list[Problem]:
    """Whether the draft's state can be had. `stored` is the draft checkpoint's own section."""
    if stored:
        return [
            Problem(
                rule=RuleId.DRAFT_STORED_QUANTIZED,
                key="quantization.draft",
                value=asked.draft,
                expected=f"a draft with plain weights; this one is stored as {stored}, which can't "
                "be loaded and is never quantized a second time",
                fix="set speculation.draft.path to the head's unquantized checkpoint",
            )
        ]
    if asked.draft == "inherit" and isinstance(asked, _StoredOnly):
        return [
            Problem(
                rule=RuleId.DRAFT_CANNOT_INHERIT,
                key="quantization.draft",
                value="inherit",
                expected="none or a scheme that is applied while loading: the target's is stored "
                "in its checkpoint, and the draft's checkpoint has no such weights",
                fix="set quantization.draft=none",
            )
        ]
    scheme = draft_scheme(asked)
    if scheme != "int4":
        return []
    odd = _indivisible(draft_group_size(asked), size)
    return [_odd_draft(asked.draft, draft_group_size(asked), odd)] if odd else []


def draft_scheme(asked: QuantizationConfig) -> DraftScheme:
    """What the draft's weights will be held in; sound only where `draft_problems` has none."""
    setting: DraftQuantization = asked.draft
    if setting != "inherit":
        return setting
    match asked:
        case Int8Quantization() | Int4Quantization() | Fp8Quantization():
            return asked.kind
        case (
            NoQuantization()
            | CompressedTensorsInt4()
            | AwqQuantization()
            | GptqQuantization()
            | Nvfp4Quantization()
        ):
            return "none"
        case _:
            assert_never(asked)


def group_size(asked: QuantizationConfig) -> int | None:
    """Weights that share a scale; None where each row has one or none is quantized."""
    return asked.group_size if isinstance(asked, Int4Quantization | CompressedTensorsInt4) else None


def draft_group_size(asked: QuantizationConfig) -> int:
    """The group of a 4-bit draft: the target's where it has one, else the smallest there is."""
    return group_size(asked) or 32


def _stored_unasked(stored: StoredQuantization) -> Problem:
    return Problem(
        rule=RuleId.QUANTIZED_UNASKED,
        key="quantization.kind",
        value="none",
        expected=f"what the target's config.json says: {stored}",
        fix=_choose(stored),
    )


def _form_problems(kind: str, stored: StoredQuantization | None) -> list[Problem]:
    """The checkpoint has to be stored as `kind` says."""
    if stored is not None and stored.kind == kind:
        return []
    return [
        Problem(
            rule=RuleId.NOT_STORED_SO,
            key="quantization.kind",
            value=kind,
            expected=f"a checkpoint stored in {kind}, found {stored or 'no quantization_config'}",
            fix=_choose(stored) if stored else "set quantization=none",
        )
    ]


def _choose(stored: StoredQuantization) -> str:
    """The setting that describes what is stored."""
    if stored.kind is None:
        return "set model.path to the model's unquantized checkpoint"
    fix = f"set quantization={stored.kind} engine=sglang"
    if stored.kind == "compressed_tensors_int4" and stored.group_size:
        fix += f" quantization.group_size={stored.group_size}"
    return fix


def _stored_already(kind: str, stored: StoredQuantization) -> Problem:
    return Problem(
        rule=RuleId.QUANTIZED_TWICE,
        key="quantization.kind",
        value=kind,
        expected=f"a target with plain weights to quantize; this one is stored as {stored}",
        fix="set model.path to the model's unquantized checkpoint",
    )


def _compressed_problems(
    asked: CompressedTensorsInt4, stored: StoredQuantization | None
) -> list[Problem]:
    if stored is None or stored.kind != asked.kind:
        found = stored or "no quantization_config"
        return [
            Problem(
                rule=RuleId.NOT_STORED_IN_4_BITS,
                key="quantization.kind",
                value=asked.kind,
                expected=f"a checkpoint stored by compressed-tensors in 4 bits, found {found}",
                fix="set quantization=none, or model.path to the 4-bit checkpoint",
            )
        ]
    if stored.group_size not in (None, asked.group_size):
        return [
            Problem(
                rule=RuleId.OTHER_STORED_GROUPS,
                key="quantization.group_size",
                value=asked.group_size,
                expected=f"{stored.group_size}, as the checkpoint is stored",
                fix=f"set quantization.group_size={stored.group_size}",
            )
        ]
    return []


def _group_problems(asked: Int4Quantization, size: Dimensions) -> list[Problem]:
    odd = _indivisible(asked.group_size, size)
    if not odd:
        return []
    smaller = [g for g in (128, 64, 32) if g < asked.group_size and not _indivisible(g, size)]
    return [
        Problem(
            rule=RuleId.ODD_GROUPS,
            key="quantization.group_size",
            value=asked.group_size,
            expected=_groups_expected(asked.group_size, odd),
            fix=f"set quantization.group_size={smaller[0]}" if smaller else "set quantization=int8",
        )
    ]


def _odd_draft(setting: DraftQuantization, group: int, odd: list[int]) -> Problem:
    return Problem(
        rule=RuleId.DRAFT_ODD_GROUPS,
        key="quantization.draft",
        value=setting,
        expected=_groups_expected(group, odd),
        fix="set quantization.draft=none",
    )


def _groups_expected(group: int, odd: list[int]) -> str:
    widths = ", ".join(map(str, odd))
    return f"groups that divide the inputs of every layer; {group} does not divide {widths}"


def _indivisible(group: int, size: Dimensions) -> list[int]:
    """The input widths of a layer that `group` does not divide."""
    widths = {size.hidden_size, size.intermediate_size, size.num_heads * size.head_dim}
    return sorted(width for width in widths if width % group)


def _first_group(section: dict[str, Any]) -> dict[str, Any]:
    groups = section.get("config_groups")
    for group in groups.values() if isinstance(groups, dict) else ():
        weights = group.get("weights") if isinstance(group, dict) else None
        if isinstance(weights, dict):
            return weights
    return {}


def _integer(value: object) -> int | None:
    return value if type(value) is int else None
