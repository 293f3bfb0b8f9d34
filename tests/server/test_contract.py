"""The checks that every engine's server must pass, on the scripted engine."""

from collections.abc import Callable, Iterator

import pytest

from tests.server.contract import CHECKS, Served
from tests.server.live import CONTEXT_LENGTH, MODEL, live_server, make_engine


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    with live_server(make_engine(round_seconds=0.002)) as live:
        yield Served(live.base_url, MODEL, CONTEXT_LENGTH)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_server_keeps_its_promises(served: Served, check: Callable[[Served], None]) -> None:
    check(served)
