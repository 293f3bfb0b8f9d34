from pathlib import Path

import pytest

from specserve.config.compose import config_directory
from specserve.origin.places import line_of, place


def test_a_shipped_file_is_called_as_in_the_documentation() -> None:
    assert "conf/policy/off.yaml:2" == line_of(config_directory() / "policy/off.yaml", 2)


def test_a_users_file_is_called_as_seen_from_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    assert "mine/a.yaml" == line_of(tmp_path / "mine/a.yaml", None)
    assert "/elsewhere/a.yaml" == place(Path("/elsewhere/a.yaml"))
