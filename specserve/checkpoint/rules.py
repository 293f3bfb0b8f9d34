"""All rules on a pair of checkpoints, applied in the order in which they make sense. Pure."""

from dataclasses import dataclass

from specserve.checkpoint.architecture import Dimensions, read_dimensions
from specserve.checkpoint.aux_layers import AuxLayers, find_aux_layers
from specserve.checkpoint.context import ContextLimit, context_limits, context_problems
from specserve.checkpoint.draft_rules import (
    DRAFT_KEY,
    DraftShape,
    draft_rules,
    draft_shape,
    method_problems,
)
from specserve.checkpoint.header import CheckpointFacts
from specserve.checkpoint.target_rules import TARGET_KEY, architecture_problems, target_rules
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.errors import ConfigError


@dataclass(frozen=True, slots=True, kw_only=True)
class Draft:
    """A head that has passed the rules, and where it looks at the target."""

    facts: CheckpointFacts
    shape: DraftShape
    aux: AuxLayers


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckedPair:
    """Checkpoints that have passed every rule; `draft` is None without speculation."""

    target: CheckpointFacts
    size: Dimensions
    draft: Draft | None
    context_limits: tuple[ContextLimit, ...]


def check_checkpoints(
    config: RunConfig, target: CheckpointFacts, draft: CheckpointFacts | None
) -> CheckedPair:
    """The pair, understood. Raises ConfigError with every problem of both."""
    asked = _as_asked(target, config.model.path)
    problems = architecture_problems(config, asked)
    if problems:
        raise ConfigError(problems)
    size = read_dimensions(target.config, key=TARGET_KEY, path=asked.path)
    problems = target_rules(config, asked, size)
    checked_draft = None
    draft_config = None
    if draft is not None and isinstance(config.speculation, Eagle3Speculation):
        draft_config = draft.config
        try:
            checked_draft = _check_draft(config, config.speculation, draft, target, size)
        except ConfigError as error:
            problems += error.problems
    limits = context_limits(config.engine.kind, target.config, draft_config)
    if config.model.context_length != "auto":
        problems += context_problems(config.model.context_length, limits)
    if problems:
        raise ConfigError(problems)
    return CheckedPair(target=target, size=size, draft=checked_draft, context_limits=tuple(limits))


def _check_draft(
    config: RunConfig,
    speculation: Eagle3Speculation,
    draft: CheckpointFacts,
    target: CheckpointFacts,
    target_size: Dimensions,
) -> Draft:
    asked = _as_asked(draft, speculation.draft.path)
    problems = method_problems(asked, target)
    if problems:
        raise ConfigError(problems)
    size = read_dimensions(draft.config, key=DRAFT_KEY, path=asked.path)
    shape = draft_shape(draft, size)
    aux = find_aux_layers(speculation.draft, draft.config, target_size.num_layers)
    problems = draft_rules(config, asked, shape, target_size, aux)
    if problems:
        raise ConfigError(problems)
    return Draft(facts=draft, shape=shape, aux=aux)


def _as_asked(checkpoint: CheckpointFacts, path: str) -> CheckpointFacts:
    """Under the name that the configuration has for it, for problems to show what was typed."""
    return checkpoint.model_copy(update={"path": path})
