"""What the fix of a problem says, done word for word."""

from collections.abc import Callable, Sequence

import pytest

from specserve.errors import Problem
from tests.fixes import apply_fixes as apply

ApplyFixes = Callable[[Sequence[str], Sequence[Problem]], list[str]]


@pytest.fixture
def apply_fixes() -> ApplyFixes:
    return apply
