"""Settings of a policy that the other engine has no counterpart for: refused, or left out by name.

None of them moves a boundary: without them the same table of depths holds, at once and both ways.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy
from specserve.errors import Problem
from specserve.export.engine import TargetEngine
from specserve.export.source import Source
from specserve.rule_ids import RuleId

DROPPABLE = ("hysteresis", "min_dwell_rounds", "while_off", "aux_layers")


@dataclass(frozen=True, slots=True, kw_only=True)
class Loss:
    """`key`=`value` has an effect in this run, and the engine does `instead` whatever is asked.

    `name` is what --drop calls it; `without` is an override that does without.
    """

    name: str
    key: str
    value: object
    instead: str
    without: str


def find_losses(source: Source, engine: TargetEngine) -> tuple[Loss, ...]:
    """What would be lost in this export; empty if the engine does all that the run asks for."""
    return (*_policy_losses(source, engine), *_aux_layers(source, engine))


def refused(losses: Sequence[Loss], dropped: Sequence[str], engine: TargetEngine) -> list[Problem]:
    """A problem for each loss that was not accepted by name; its fix accepts all of them."""
    names = ",".join(dict.fromkeys(loss.name for loss in losses))
    return [
        Problem(
            rule=RuleId.LOST_IN_EXPORT,
            key=loss.key,
            value=loss.value,
            expected=f"what {engine.name} can do: {loss.instead}",
            fix=f"add --drop {names} to leave it out, or set {loss.without}",
        )
        for loss in losses
        if loss.name not in dropped
    ]


def _policy_losses(source: Source, engine: TargetEngine) -> Iterator[Loss]:
    policy = source.policy
    if isinstance(policy, AlwaysPolicy):
        return  # the depth never changes: nothing holds it back and nothing is ever off
    if isinstance(policy, BatchThresholdPolicy):
        hysteresis = policy.disable_above - policy.resume_at
        key, value, without = "resume_at", policy.resume_at, policy.disable_above
    else:
        hysteresis = policy.hysteresis
        key, value, without = "hysteresis", policy.hysteresis, 0
    if hysteresis:
        yield Loss(
            name="hysteresis",
            key=f"policy.{key}",
            value=value,
            instead="it switches at the same number of requests both ways",
            without=f"policy.{key}={without}",
        )
    if policy.min_dwell_rounds > 1:  # the round of a switch is the first of its dwell
        yield Loss(
            name="min_dwell_rounds",
            key="policy.min_dwell_rounds",
            value=policy.min_dwell_rounds,
            instead="it follows the batch size in every step",
            without="policy.min_dwell_rounds=0",
        )
    if policy.while_off not in engine.while_off:
        yield Loss(
            name="while_off",
            key="policy.while_off",
            value=policy.while_off,
            instead=f"while off it does what is called {engine.while_off[0]} here",
            without=f"policy.while_off={engine.while_off[0]}",
        )


def _aux_layers(source: Source, engine: TargetEngine) -> Iterator[Loss]:
    draft = source.speculation.draft
    asked = {
        "aux_layer_ids": (draft.aux_layer_ids, "auto"),
        "aux_layer_convention": (draft.aux_layer_convention, "output"),
    }
    for field, (value, usual) in asked.items():
        if value != usual:
            key = f"speculation.draft.{field}"
            yield Loss(
                name="aux_layers",
                key=key,
                value=value,
                instead="it takes the layers from the draft's config.json",
                without=f"{key}={usual}",
            )
