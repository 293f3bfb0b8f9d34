import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from specserve.config.run import RunConfig
from specserve.errors import ConfigError
from specserve.serve.prepare import prepare

LoadRun = Callable[..., RunConfig]


def _refused(run: RunConfig, directory: Path) -> list[str]:
    """Keys of the problems; nothing may have been written."""
    with pytest.raises(ConfigError) as caught:
        prepare(run, overrides=[], run_directory=directory)
    assert not directory.exists()
    return [problem.key for problem in caught.value.problems]


def test_a_prepared_run_has_its_port_and_its_folder(load: LoadRun, tmp_path: Path) -> None:
    prepared = prepare(load(), overrides=["policy=always"], run_directory=tmp_path / "run")

    with prepared.listener:
        assert prepared.listener.getsockname()[1] > 0
    assert "policy=always\n" == (prepared.directory.path / "overrides.txt").read_text()
    assert prepared.plan.speculation is not None


def test_sglang_is_refused_until_it_can_be_started(load: LoadRun, tmp_path: Path) -> None:
    assert ["engine"] == _refused(load("engine=sglang"), tmp_path / "run")


def test_a_missing_model_is_refused_before_anything_is_written(
    load: LoadRun, tmp_path: Path
) -> None:
    run = load(f"model.path={tmp_path}/nowhere")

    assert ["model.path"] == _refused(run, tmp_path / "run")


def test_a_model_that_was_not_downloaded_is_refused(load: LoadRun, tmp_path: Path) -> None:
    run = load("model.path=some-organisation/some-model")

    assert "model.path" in _refused(run, tmp_path / "run")


def test_a_port_in_use_is_refused_before_anything_is_written(load: LoadRun, tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        run = load(f"server.port={taken.getsockname()[1]}")

        assert ["server.port"] == _refused(run, tmp_path / "run")


def test_a_folder_that_exists_is_refused_and_gives_the_port_back(
    load: LoadRun, tmp_path: Path
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    run = load(f"server.port={port}")

    with pytest.raises(ConfigError, match=r"hydra\.run\.dir"):
        prepare(run, overrides=[], run_directory=tmp_path)

    with socket.create_server(("127.0.0.1", port)):
        pass
