import asyncio

import pytest

from specserve.errors import EngineError, RequestError
from specserve.testing.slots import Slots


def test_slots_go_to_who_asked_first() -> None:
    async def main() -> list[str]:
        slots, order = Slots(total=1, max_queued=2), []
        await slots.take()

        async def take(name: str) -> None:
            await slots.take()
            order.append(name)
            slots.give_back()

        waiting = [asyncio.create_task(take(name)) for name in "ab"]
        await asyncio.sleep(0)
        assert (1, 2) == (slots.num_taken, slots.num_queued)
        slots.give_back()
        await asyncio.gather(*waiting)
        assert 0 == slots.num_taken
        return order

    assert ["a", "b"] == asyncio.run(main())


def test_a_full_queue_refuses_with_429() -> None:
    async def main() -> None:
        slots = Slots(total=1, max_queued=0)
        await slots.take()
        await slots.take()

    with pytest.raises(RequestError, match="queue full") as caught:
        asyncio.run(main())

    assert 429 == caught.value.status


@pytest.mark.parametrize("handed_over", [False, True])
def test_a_slot_is_not_lost_with_whoever_stops_waiting(handed_over: bool) -> None:
    """Also if it had been handed over, and the waiter had not run since."""

    async def main() -> int:
        slots = Slots(total=1, max_queued=1)
        await slots.take()
        waiting = asyncio.create_task(slots.take())
        await asyncio.sleep(0)
        if handed_over:
            slots.give_back()
        waiting.cancel()
        await asyncio.gather(waiting, return_exceptions=True)
        if not handed_over:
            slots.give_back()
        return slots.num_taken + slots.num_queued

    assert 0 == asyncio.run(main())


def test_failing_reaches_whoever_waits() -> None:
    async def main() -> None:
        slots = Slots(total=1, max_queued=1)
        await slots.take()
        waiting = asyncio.create_task(slots.take())
        await asyncio.sleep(0)
        slots.fail("worker killed")
        await waiting

    with pytest.raises(EngineError, match="worker killed"):
        asyncio.run(main())
