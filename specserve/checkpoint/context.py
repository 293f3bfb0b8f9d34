"""How many tokens a request may hold, as far as the checkpoints limit it."""

from dataclasses import dataclass
from typing import Any

from specserve.checkpoint.architecture import EngineName, text_config
from specserve.errors import Problem
from specserve.rule_ids import RuleId

KEY = "model.context_length"


@dataclass(frozen=True, slots=True, kw_only=True)
class ContextLimit:
    """`tokens` is the largest context that `source`, a phrase, allows."""

    tokens: int
    source: str


def context_limits(
    engine: EngineName, target_config: dict[str, Any], draft_config: dict[str, Any] | None
) -> list[ContextLimit]:
    """Every limit that the two configs state, the tightest first. The target's is sound.

    The torch engine computes full attention, so for it a sliding window is a limit too: up to the
    window, both are the same.
    """
    limits = _limits(engine, "target", target_config)
    if draft_config is not None:
        limits += _limits(engine, "draft", draft_config)
    return sorted(limits, key=lambda limit: limit.tokens)


def context_problems(asked: int, limits: list[ContextLimit]) -> list[Problem]:
    """A problem if `asked` tokens are more than any limit; it names the tightest."""
    tightest = limits[0]
    if asked <= tightest.tokens:
        return []
    return [
        Problem(
            rule=RuleId.CONTEXT_TOO_LONG,
            key=KEY,
            value=asked,
            expected=f"at most {tightest.tokens}, {tightest.source}",
            fix=f"set {KEY}={tightest.tokens}",
        )
    ]


def sliding_window(config: dict[str, Any]) -> int | None:
    """Tokens that each query of a windowed layer sees; None where every layer sees all."""
    inner = text_config(config)
    window = inner.get("sliding_window")
    if inner.get("use_sliding_window") is False or type(window) is not int or window < 1:
        return None
    return window


def _limits(engine: EngineName, role: str, config: dict[str, Any]) -> list[ContextLimit]:
    limits = []
    positions = text_config(config).get("max_position_embeddings")
    if type(positions) is int and positions > 0:
        source = f"the {role}'s max_position_embeddings {positions}"
        limits.append(ContextLimit(tokens=positions, source=source))
    window = sliding_window(config)
    if engine == "torch" and window is not None:
        source = f"the {role}'s sliding window {window}, beyond which engine=torch would differ"
        limits.append(ContextLimit(tokens=window, source=source))
    return limits
