import asyncio
import os
import signal

import pytest

from specserve.serve.told import signals


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_signal_inside_the_block_waits_in_the_queue(number: signal.Signals) -> None:
    async def main() -> signal.Signals:
        with signals() as told:
            os.kill(os.getpid(), number)
            return await asyncio.wait_for(told.get(), 5)

    assert number is asyncio.run(main())


def test_signals_keep_their_order() -> None:
    async def main() -> list[signal.Signals]:
        with signals() as told:
            os.kill(os.getpid(), signal.SIGTERM)
            first = await asyncio.wait_for(told.get(), 5)
            os.kill(os.getpid(), signal.SIGINT)
            return [first, await asyncio.wait_for(told.get(), 5)]

    assert [signal.SIGTERM, signal.SIGINT] == asyncio.run(main())


def test_after_the_block_an_interrupt_interrupts_again() -> None:
    async def main() -> None:
        with signals():
            pass
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(5)

    with pytest.raises(KeyboardInterrupt):
        asyncio.run(main())
