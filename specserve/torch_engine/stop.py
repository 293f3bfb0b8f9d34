"""Where a run of new tokens ends: stop tokens and the length cap."""

from collections.abc import Sequence, Set
from typing import Literal, NamedTuple

Ending = Literal["stop", "length"]


class Trim(NamedTuple):
    """How many tokens of a run are kept, and why generation ends there; None: it goes on."""

    num_kept: int
    ending: Ending | None


def trim_run(run: Sequence[int], *, num_emitted: int, stop_ids: Set[int], max_tokens: int) -> Trim:
    """Trim what one round added to a request that had emitted `num_emitted` tokens before.

    The first stop token within the budget wins and is itself kept; a stop token beyond
    `max_tokens` is never reached, so the run then ends by length.
    """
    budget = max_tokens - num_emitted
    for index, token in enumerate(run[:budget]):
        if token in stop_ids:
            return Trim(index + 1, "stop")
    return Trim(budget, "length") if len(run) >= budget else Trim(len(run), None)
