"""A worker whose step never ends, told from one that is slow and from a machine that was paused."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

# How often a worker is looked at; more often where the limit is short.
_LOOK_SECONDS = 1.0
_LOOKS_PER_LIMIT = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class Pulse:
    """An answer of the living worker. `time` is monotonic.

    `step_seconds` is the age of the step that was running, None between steps: a long prefill
    shows as a high age, a dead worker as no answer.
    """

    time: float
    step_seconds: float | None


async def until_hung(look: Callable[[], Awaitable[Pulse]], limit_seconds: float) -> str:
    """Return, for people, what hangs: a step older than the limit, a worker mute for as long.

    Whatever `look` raises comes out.
    """
    pause = min(_LOOK_SECONDS, limit_seconds / _LOOKS_PER_LIMIT)
    while True:
        await asyncio.sleep(pause)
        if await _finding(look, limit_seconds, patience=limit_seconds) is None:
            continue
        # A machine that was paused shows an old step, too: one that goes on with the next look.
        await asyncio.sleep(pause)
        finding = await _finding(look, limit_seconds, patience=pause)
        if finding is not None:
            return f"{finding} (scheduler.step_limit_seconds={limit_seconds:g})"


async def _finding(
    look: Callable[[], Awaitable[Pulse]], limit_seconds: float, *, patience: float
) -> str | None:
    try:
        async with asyncio.timeout(patience):
            pulse = await look()
    except TimeoutError:
        return f"it has not answered for more than {limit_seconds:g} s"
    age = pulse.step_seconds
    return None if age is None or age <= limit_seconds else f"its step has run for {age:.1f} s"
