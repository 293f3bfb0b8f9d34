"""Do what the fix of a problem says, word for word, as a reader in a hurry would."""

import re
import shlex
from collections.abc import Callable, Sequence

import pytest

from specserve.errors import Problem

ApplyFixes = Callable[[Sequence[str], Sequence[Problem]], list[str]]

_OVERRIDE = re.compile(r"[+~]*[\w./-]+=")


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")


def _apply_fixes(overrides: Sequence[str], problems: Sequence[Problem]) -> list[str]:
    fixed = list(overrides)
    for problem in problems:
        # The first remedy that is offered; ", or" introduces another.
        words = shlex.split(problem.fix.split(", or ")[0])
        added = [word for word in words if _OVERRIDE.match(word)]
        gone = {problem.key.lstrip("+~"), *map(_key, added)}
        fixed = [override for override in fixed if _key(override) not in gone] + added
    return fixed


@pytest.fixture
def apply_fixes() -> ApplyFixes:
    return _apply_fixes
