"""A tiny real pair, its facts, and runs that point at it."""

from collections.abc import Callable
from functools import cache
from pathlib import Path

import pytest

from specserve.checkpoint.header import CheckpointFacts, read_checkpoint
from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.testing.checkpoints import write_draft, write_target

MakeRun = Callable[..., RunConfig]


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A target of 8 layers, hidden size 64, 320 ids; a head that proposes 128 of them."""
    folder = tmp_path_factory.mktemp("pair")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


@pytest.fixture(scope="session")
def target(folders: tuple[Path, Path]) -> CheckpointFacts:
    return read_checkpoint(folders[0])


@pytest.fixture(scope="session")
def draft(folders: tuple[Path, Path]) -> CheckpointFacts:
    return read_checkpoint(folders[1])


@pytest.fixture(scope="session")
def make_run(folders: tuple[Path, Path]) -> MakeRun:
    """The experiment topk1_v2 on the pair, with the given overrides after it."""

    @cache
    def run(*overrides: str) -> RunConfig:
        pair = [f"model.path={folders[0]}", f"model.draft_path={folders[1]}"]
        return load_run(["+experiment=topk1_v2", *pair, *overrides]).config

    return run
