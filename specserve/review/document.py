"""A difference as JSON values."""

from collections.abc import Sequence
from typing import Any

from specserve.errors import Doubt, Problem
from specserve.review.depths import Depth
from specserve.review.difference import ABSENT, Change, Difference


def document(difference: Difference) -> dict[str, Any]:
    """A side that has nothing of a name lacks `before` or `after`."""
    return {
        "keys": _changes(difference.keys),
        "depths": [
            {
                "first": row.first,
                "last": row.last,
                "before": _depth(row.before),
                "after": _depth(row.after),
            }
            for row in difference.depths
        ],
        "arguments": _changes(difference.arguments),
        "memory_bytes": _changes(difference.memory),
        "decided": _changes(difference.decided),
        "broken": _told(difference.broken),
        "mended": _told(difference.mended),
        "dangers": _told(difference.dangers),
        "doubts": _told(difference.doubts),
        "settled": _told(difference.settled),
    }


def _changes(changes: Sequence[Change]) -> list[dict[str, Any]]:
    return [
        {
            "name": change.name,
            "key": change.key,
            **({} if change.before is ABSENT else {"before": change.before}),
            **({} if change.after is ABSENT else {"after": change.after}),
        }
        for change in changes
    ]


def _depth(depth: Depth | None) -> dict[str, int] | None:
    return None if depth is None else {"rising": depth.rising, "falling": depth.falling}


def _told(told: Sequence[Problem | Doubt]) -> list[dict[str, str]]:
    return [{"rule": str(one.rule), "key": one.key, "text": str(one)} for one in told]
