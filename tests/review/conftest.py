"""A user's repository with configs of its own, made with real git."""

import os
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

EXPERIMENT = """\
# @package _global_
defaults:
  - override /speculation: eagle3_topk1
  - override /policy: batch_threshold
policy:
  disable_above: {disable_above}
  resume_at: 2
"""


def experiment(disable_above: int) -> str:
    """An experiment file that is valid up to 16."""
    return EXPERIMENT.format(disable_above=disable_above)


@dataclass(frozen=True)
class UserRepository:
    """`top` is the working directory; its configs lie in serving/."""

    top: Path

    def write(self, path: str, contents: str | bytes) -> Path:
        """Below serving/experiment, but for a path that begins with a slash: below the top."""
        place = self.top / path[1:] if path.startswith("/") else self.experiments / path
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(contents.encode() if isinstance(contents, str) else contents)
        return place

    def commit(self) -> str:
        """Everything; the hash."""
        self.git("add", "--all")
        self.git("commit", "--quiet", "--allow-empty", "--message", "change")
        return self.git("rev-parse", "HEAD").strip()

    def git(self, *arguments: str) -> str:
        """What git prints."""
        return subprocess.run(
            ["git", *arguments], cwd=self.top, check=True, capture_output=True, text=True
        ).stdout

    @property
    def experiments(self) -> Path:
        """Where a user's experiments lie."""
        return self.top / "serving/experiment"


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> UserRepository:
    """With one commit: experiments `few` (up to 4) and `more` (up to 8)."""
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    for role in ("AUTHOR", "COMMITTER"):
        monkeypatch.setenv(f"GIT_{role}_NAME", "somebody")
        monkeypatch.setenv(f"GIT_{role}_EMAIL", "somebody@example.org")
        monkeypatch.setenv(f"GIT_{role}_DATE", "2026-01-01T00:00:00Z")
    top = tmp_path / "theirs"
    top.mkdir()
    made = UserRepository(top)
    made.git("init", "--quiet", "--initial-branch", "main")
    made.write("few.yaml", experiment(4))
    made.write("more.yaml", experiment(8))
    made.commit()
    monkeypatch.chdir(top)
    return made


@pytest.fixture
def review(repository: UserRepository) -> Callable[..., str]:
    """The comment on what changed since the first commit."""
    from specserve.review import review_change

    def run(*flags: str) -> str:
        return review_change(["--base", "main", "--config-dir", "serving", *flags]).text

    return run
