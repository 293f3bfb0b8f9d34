"""A folder of configs as a user has it."""

from collections.abc import Mapping
from pathlib import Path
from textwrap import dedent

import pytest

GOOD = """\
    # @package _global_
    defaults:
      - override /speculation: eagle3_topk1
      - override /policy: mine
    speculation:
      num_steps: 2
    """
MINE = """\
    kind: batch_threshold
    disable_above: 4
    resume_at: 3
    min_dwell_rounds: 8
    while_off: refill
    """


def write(folder: Path, files: Mapping[str, str]) -> Path:
    """`files` by their path below `folder`, dedented."""
    for name, text in files.items():
        file = folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(dedent(text), encoding="utf-8")
    return folder


@pytest.fixture
def configs(tmp_path: Path) -> Path:
    """One experiment and one policy, both sound."""
    return write(tmp_path / "configs", {"experiment/good.yaml": GOOD, "policy/mine.yaml": MINE})
