"""A configuration that plans on any machine: a tiny random pair, a free port."""

from collections.abc import Callable
from pathlib import Path

import pytest

from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.testing.checkpoints import write_draft, write_target

LoadRun = Callable[..., RunConfig]


@pytest.fixture(autouse=True)
def _processes_find_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkout under test, also for scripts that lie elsewhere."""
    monkeypatch.setenv("PYTHONPATH", str(Path(__file__).parents[2]))


@pytest.fixture(scope="session")
def tiny_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, ...]:
    """Overrides that serve a random pair, speculating."""
    folder = tmp_path_factory.mktemp("checkpoints")
    target = write_target(folder / "target", architecture="llama")
    draft = write_draft(folder / "draft", target_folder=target)
    return (
        "speculation=eagle3_topk1",
        "policy=always",
        f"model.path={target}",
        f"model.draft_path={draft}",
        "server.port=0",
        "logging=json",
    )


@pytest.fixture
def load(tiny_pair: tuple[str, ...]) -> LoadRun:
    """The tiny pair's configuration, with further overrides."""

    def run(*overrides: str) -> RunConfig:
        return load_run([*tiny_pair, *overrides], []).config

    return run
