"""What a config asks to be computed that the torch engine does not compute: refused, not ignored.

SGLang has its own, larger set and its own refusals; these rules are for engine=torch.
"""

from typing import Any

from specserve.checkpoint.architecture import text_config
from specserve.errors import Problem
from specserve.rule_ids import RuleId

ROPE_TYPES = ("default", "llama3")
ACTIVATIONS = ("silu",)


def computation_problems(config: dict[str, Any], *, key: str, path: str) -> list[Problem]:
    """One problem for each feature of the config that is not implemented."""
    inner = text_config(config)
    found = [
        ("rope type", rope_type(config), ROPE_TYPES),
        ("hidden_act", inner.get("hidden_act", "silu"), ACTIVATIONS),
        ("partial_rotary_factor", _partial_rotary_factor(inner), (1.0,)),
    ]
    return [
        Problem(
            rule=RuleId.UNSUPPORTED_COMPUTATION,
            key=key,
            value=path,
            expected=f"{name} {' or '.join(map(str, known))}, which engine=torch computes; "
            f"config.json says {value!r}",
            fix="set engine=sglang, or take another model",
        )
        for name, value, known in found
        if value not in known
    ]


def rope_type(config: dict[str, Any]) -> str:
    """The rotary embedding's kind; both spellings of the section, and of its `type`, are in use."""
    section = _rope_section(text_config(config))
    kind = section.get("rope_type", section.get("type")) if isinstance(section, dict) else section
    return "default" if kind is None else str(kind)


def _partial_rotary_factor(config: dict[str, Any]) -> object:
    section = _rope_section(config)
    default = config.get("partial_rotary_factor", 1.0)
    return section.get("partial_rotary_factor", default) if isinstance(section, dict) else default


def _rope_section(config: dict[str, Any]) -> object:
    return config.get("rope_parameters") or config.get("rope_scaling") or {}
