import asyncio
from collections.abc import Iterator

import pytest

from specserve.errors import EngineError
from specserve.worker.hang import Pulse, until_hung

LIMIT = 0.2


class Looks:
    """Answers with these ages, one a look; "mute" never answers, and the end is an error."""

    def __init__(self, *ages: float | str | None) -> None:
        self._ages: Iterator[float | str | None] = iter(ages)

    async def __call__(self) -> Pulse:
        match next(self._ages, "gone"):
            case "mute":
                await asyncio.sleep(60)
                raise AssertionError
            case "gone":
                raise EngineError("gone")
            case age:
                assert not isinstance(age, str)
                return Pulse(time=0.0, step_seconds=age)


def _verdict(*ages: float | str | None) -> str:
    return asyncio.run(asyncio.wait_for(until_hung(Looks(*ages), LIMIT), 10))


@pytest.mark.parametrize(
    ("ages", "found"),
    [
        ((None, 0.1, 0.21, 0.26), "its step has run for 0.3 s"),
        (("mute", "mute"), "it has not answered for more than 0.2 s"),
        ((0.3, "mute"), "it has not answered for more than 0.2 s"),
    ],
)
def test_two_looks_in_a_row_make_a_hang(ages: tuple[float | str | None, ...], found: str) -> None:
    assert f"{found} (scheduler.step_limit_seconds=0.2)" == _verdict(*ages)


@pytest.mark.parametrize(
    "ages",
    [
        (0.2, 0.2, 0.2),  # as old as it may be
        (9.0, None, 9.0, 0.1),  # paused twice, and gone on each time
        ("mute", 0.1),
        (None, None),
    ],
)
def test_a_machine_that_was_paused_is_none_that_hangs(ages: tuple[float | str | None, ...]) -> None:
    """The looks end with the worker itself, which is not for this module to judge."""
    with pytest.raises(EngineError, match="gone"):
        _verdict(*ages)
