import asyncio

import pytest

from specserve.serve.service import running


def test_what_still_runs_at_the_end_of_the_block_has_ended_after_it() -> None:
    ended: list[str] = []

    async def work() -> None:
        try:
            await asyncio.sleep(60)
        finally:
            await asyncio.sleep(0)  # ending takes a turn of the loop
            ended.append("cleanly")

    async def main() -> None:
        async with running(work()):
            await asyncio.sleep(0)
        assert ["cleanly"] == ended

    asyncio.run(main())


def test_what_has_ended_keeps_its_result() -> None:
    async def work() -> int:
        return 7

    async def main() -> int:
        async with running(work()) as task:
            await asyncio.wait({task})
        return task.result()

    assert 7 == asyncio.run(main())


def test_an_error_of_the_block_ends_the_work_and_stays_itself() -> None:
    async def main() -> None:
        async with running(asyncio.sleep(60)):
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        asyncio.run(main())
