"""Real SGLang servers, started once for all tests; without SGLang, their tests are skipped."""

from collections.abc import Iterator

import pytest

from specserve.testing.constructed import ConstructedPair, construct_pair
from tests.sglang_engine.cpu_sglang import (
    DEMO,
    SGLangServer,
    eagle3_arguments,
    plain_arguments,
    sglang_server,
    why_missing,
)


@pytest.fixture(scope="session")
def sglang_installed() -> None:
    """Skip, and say how to get it, where SGLang cannot run."""
    reason = why_missing()
    if reason is not None:
        pytest.skip(reason)


@pytest.fixture(scope="session")
def plain_demo(
    sglang_installed: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SGLangServer]:
    """The bundled target, without speculation."""
    arguments = plain_arguments(DEMO / "target")
    with sglang_server(arguments, tmp_path_factory.mktemp("plain") / "log.txt") as server:
        yield server


@pytest.fixture(scope="session")
def eagle3_demo(
    sglang_installed: None, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SGLangServer]:
    """The bundled pair."""
    arguments = eagle3_arguments(DEMO / "target", DEMO / "draft")
    with sglang_server(arguments, tmp_path_factory.mktemp("eagle3") / "log.txt") as server:
        yield server


@pytest.fixture(scope="session")
def constructed_pair(tmp_path_factory: pytest.TempPathFactory) -> ConstructedPair:
    """A pair whose every token and acceptance is known."""
    return construct_pair(tmp_path_factory.mktemp("constructed"))


@pytest.fixture(scope="session")
def eagle3_constructed(
    sglang_installed: None,
    constructed_pair: ConstructedPair,
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SGLangServer]:
    """The constructed pair."""
    arguments = eagle3_arguments(constructed_pair.target_folder, constructed_pair.draft_folder)
    with sglang_server(arguments, tmp_path_factory.mktemp("constructed") / "log.txt") as server:
        yield server
