"""The length of a row: the token slots that one running request owns in engine=torch."""

_ALIGNMENT = 8
_ROUNDS_AHEAD = 2  # the overlap scheduler may run one round past a request's end
_SCRATCH_SLOTS = 1  # padding is written there; nothing is ever read from it


def row_slack(num_draft_tokens: int) -> int:
    """Slots beyond the context: verified tokens that overshoot it, and the scratch slot.

    `num_draft_tokens` is 1 without speculation.
    """
    return _ROUNDS_AHEAD * num_draft_tokens + _SCRATCH_SLOTS


def row_tokens(context_length: int, num_draft_tokens: int) -> int:
    """Slots of one row, a multiple of 8."""
    return -(-(context_length + row_slack(num_draft_tokens)) // _ALIGNMENT) * _ALIGNMENT
