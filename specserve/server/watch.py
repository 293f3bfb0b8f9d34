"""Watch the worker's counters: say once when speculation does not help; notice its death."""

import asyncio
from dataclasses import dataclass

from specserve.engine import EngineStats
from specserve.errors import EngineError
from specserve.server.context import Context
from specserve.server.state import Ready, Serving

WINDOW_VERIFY_ROUNDS = 200
USELESS_ACCEPTANCE_LENGTH = 1.05


@dataclass(frozen=True, slots=True, kw_only=True)
class UselessDraft:
    """Acceptance stayed near 1.0 over `verify_rounds`: drafting cost time and gave nothing."""

    drafted: int
    accepted: int
    verify_rounds: int
    acceptance_length: float


class AcceptanceWatch:
    """Looks at the totals now and then; reports a useless draft once, until it helps again."""

    def __init__(self) -> None:
        self._drafted = 0
        self._accepted = 0
        self._verify_rounds = 0
        self._reported = False

    def look(self, stats: EngineStats) -> UselessDraft | None:
        """A finding, if the rounds since the last look are enough to judge and it is news."""
        verify_rounds = stats.verify_rounds - self._verify_rounds
        if verify_rounds < WINDOW_VERIFY_ROUNDS:
            return None
        accepted, drafted = stats.accepted - self._accepted, stats.drafted - self._drafted
        self._drafted, self._accepted = stats.drafted, stats.accepted
        self._verify_rounds = stats.verify_rounds
        acceptance_length = 1 + accepted / verify_rounds
        useless = acceptance_length < USELESS_ACCEPTANCE_LENGTH
        is_news = useless and not self._reported
        self._reported = useless
        if not is_news:
            return None
        return UselessDraft(
            drafted=drafted,
            accepted=accepted,
            verify_rounds=verify_rounds,
            acceptance_length=acceptance_length,
        )


async def watch(context: Context) -> None:
    """Run until cancelled."""
    acceptance = AcceptanceWatch()
    while True:
        match context.state.lifecycle:
            case Ready(serving=serving):
                await _look(context, serving, acceptance)
            case _:
                pass  # nothing to watch yet, or any more
        await asyncio.sleep(context.watch_seconds)


async def _look(context: Context, serving: Serving, acceptance: AcceptanceWatch) -> None:
    try:
        stats = await serving.engine.stats()
    except EngineError as error:
        context.state.fail(str(error))
        return
    context.history.note_stats(stats)
    finding = acceptance.look(stats)
    speculation = context.plan.speculation
    if finding is None or speculation is None:
        return
    context.record_event(
        "warning.useless_draft",
        {
            "draft": speculation.draft.path,
            "drafted": finding.drafted,
            "accepted": finding.accepted,
            "verify_rounds": finding.verify_rounds,
            "acceptance_length": finding.acceptance_length,
            "advice": "check that the draft was trained for this target, and its aux layer ids",
        },
    )
