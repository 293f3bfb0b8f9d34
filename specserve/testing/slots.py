"""Slots for running requests, handed on in the order of asking."""

import asyncio
from collections import deque

from specserve.errors import EngineError, RequestError


class Slots:
    """At most `total` are taken, and at most `max_queued` wait for one."""

    def __init__(self, *, total: int, max_queued: int) -> None:
        self.total = total
        self._max_queued = max_queued
        self._num_taken = 0
        self._queue: deque[asyncio.Future[None]] = deque()

    @property
    def num_taken(self) -> int:
        """Slots that are held."""
        return self._num_taken

    @property
    def num_queued(self) -> int:
        """Who waits."""
        return len(self._queue)

    async def take(self) -> None:
        """Return once a slot is ours. Raises RequestError (429) if too many wait already."""
        if self._num_taken < self.total:
            self._num_taken += 1
            return
        if len(self._queue) >= self._max_queued:
            message = f"queue full: {self._num_taken} requests run, {len(self._queue)} wait"
            raise RequestError(message, param=None, status=429)
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._queue.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn in self._queue:
                self._queue.remove(turn)
            elif not turn.cancelled():  # the slot had been handed to us already
                self.give_back()
            raise

    def give_back(self) -> None:
        """Hand a slot to the next who waits, if anybody does."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.cancelled():
                turn.set_result(None)
                return
        self._num_taken -= 1

    def fail(self, reason: str) -> None:
        """Whoever waits gets an EngineError."""
        while self._queue:
            turn = self._queue.popleft()
            if not turn.cancelled():
                turn.set_exception(EngineError(reason))
