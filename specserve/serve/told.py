"""Signals as something to wait for."""

import asyncio
import signal
from collections.abc import Iterator
from contextlib import contextmanager

Told = asyncio.Queue[signal.Signals]
"""SIGTERM (finish, then end) and SIGINT (end now), in the order in which they came."""


@contextmanager
def signals() -> Iterator[Told]:
    """Inside the block both signals go to the queue; outside they do what they did before."""
    told: Told = asyncio.Queue()
    loop = asyncio.get_running_loop()
    caught = (signal.SIGTERM, signal.SIGINT)
    for number in caught:
        loop.add_signal_handler(number, told.put_nowait, number)
    try:
        yield told
    finally:
        for number in caught:
            loop.remove_signal_handler(number)
