"""The length of a row: the token slots that one running request owns in engine=torch."""

from specserve.plan.values import SpeculationPlan

_ALIGNMENT = 8
_SCRATCH_SLOTS = 1  # padding is written there; nothing is ever read from it


def row_slack(speculation: SpeculationPlan | None) -> int:
    """Slots beyond the context, so that no round writes past the end of a row.

    The overlap scheduler may begin a round when the one before, which nobody has looked at yet,
    has already passed the request's end by up to `num_steps` tokens. That round still writes all
    the tokens that it verifies, and in the draft's cache all the nodes that it expands.
    """
    if speculation is None:
        return 1 + _SCRATCH_SLOTS
    num_expanded = (speculation.num_steps - 1) * speculation.topk
    num_written = max(speculation.num_draft_tokens, num_expanded)
    return speculation.num_steps + num_written + _SCRATCH_SLOTS


def row_tokens(context_length: int, slack: int) -> int:
    """Slots of one row, a multiple of 8."""
    return -(-(context_length + slack) // _ALIGNMENT) * _ALIGNMENT
