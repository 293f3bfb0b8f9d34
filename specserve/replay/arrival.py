"""What a policy does with a steady load, by the load that it comes from."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from specserve.policy.observation import Decision, Observation, Policy, RoundCounters

_MANY = 1_000_000  # requests whose outcome outweighs whatever a policy assumed before


@dataclass(frozen=True, slots=True, kw_only=True)
class Arrival:
    """The decision that lasts, after rounds with `coming_from` running decodes at `from_depth`."""

    coming_from: int
    from_depth: int
    decision: Decision


def arrivals(
    make: Callable[[], Policy],
    running_decodes: int,
    others: Sequence[int],
    acceptance: Sequence[float] | None,
    dwell: int,
) -> list[Arrival]:
    """One for each of `others`, each with a fresh policy that does not explore.

    `acceptance`, by position, is what the policy has seen; None if it has seen nothing yet.
    `dwell` rounds are what a depth lasts at least.
    """
    return [_arrive(make(), other, running_decodes, acceptance, dwell) for other in others]


def _arrive(
    policy: Policy, before: int, after: int, acceptance: Sequence[float] | None, dwell: int
) -> Arrival:
    last_round = _seen(acceptance) if acceptance else None
    policy.decide(Observation(running_decodes=before, last_round=last_round, elapsed_seconds=0.0))
    return Arrival(
        coming_from=before,
        from_depth=_settled(policy, before, dwell).num_steps,
        decision=_settled(policy, after, dwell),
    )


def _settled(policy: Policy, running_decodes: int, dwell: int) -> Decision:
    """The decision once the dwell of a switch before it has passed, and a round more."""
    look = Observation(running_decodes=running_decodes, last_round=None, elapsed_seconds=0.0)
    for _ in range(dwell):
        policy.decide(look)
    policy.decide(look)
    return policy.decide(look)


def _seen(acceptance: Sequence[float]) -> RoundCounters:
    return RoundCounters(
        num_steps=len(acceptance),
        verified=_MANY,
        drafted=_MANY * len(acceptance),
        accepted_by_position=tuple(round(_MANY * chance) for chance in acceptance),
    )
