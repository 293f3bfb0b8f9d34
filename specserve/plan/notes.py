"""What planning has to say beside its values."""

from collections.abc import Iterable
from typing import Any

from specserve.errors import Doubt, Problem
from specserve.plan.values import Adjustment


class Notes:
    """Adjustments, doubts and problems, gathered in the order of decisions by one make_plan."""

    def __init__(self) -> None:
        self.adjustments: list[Adjustment] = []
        self.doubts: list[Doubt] = []
        self.problems: list[Problem] = []

    def adjust(self, key: str, asked: Any, effective: Any, reason: str) -> None:  # noqa: ANN401
        """Record a value that the config left open or that differs from it. JSON values only."""
        self.adjustments.append(
            Adjustment(key=key, asked=asked, effective=effective, reason=reason)
        )

    def warn(self, doubt: Doubt) -> None:
        """Record what works but is likely not meant."""
        self.doubts.append(doubt)

    def refuse(self, problems: Iterable[Problem]) -> None:
        """Record what can't work; planning goes on, so that all problems are told at once."""
        self.problems.extend(problems)
