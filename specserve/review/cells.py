"""Values as short, safe text: what a pull request holds reaches a comment only through here."""

import json

from specserve.review.depths import Depth, LoadDepths
from specserve.review.difference import ABSENT, Change

LONGEST = 160
_MIB = 2**20


def value_cell(value: object) -> str:
    """A plain value in JSON, so that 3 is not "3"; nothing that does not print."""
    return "—" if value is ABSENT else short(json.dumps(value, ensure_ascii=False, default=repr))


def short(text: str) -> str:
    """One line without invisible characters; what is cut off is said."""
    shown = printable(text)
    if len(shown) <= LONGEST:
        return shown
    return f"{shown[:LONGEST]}… ({len(shown):,} characters)"


def printable(text: str) -> str:
    """Control characters and those that reorder text, escaped."""
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def memory_cell(num_bytes: object) -> str:
    """Mebibytes."""
    return f"{num_bytes / _MIB:,.1f} MiB" if isinstance(num_bytes, int) else "—"


def growth_cell(change: Change) -> str:
    """By how much a size grew."""
    before = change.before if isinstance(change.before, int) else 0
    after = change.after if isinstance(change.after, int) else 0
    return f"{(after - before) / _MIB:+,.1f} MiB"


def depth_cell(depth: Depth | None, side: LoadDepths | None) -> str:
    """Steps; both figures where it matters whether the load rises or falls."""
    if side is None:
        return "—"
    if depth is None:
        return "not admitted"
    if depth.rising == depth.falling:
        return _steps(depth.rising)
    return f"{_steps(depth.rising)}; {_steps(depth.falling)} coming from more"


def _steps(num_steps: int) -> str:
    if num_steps == 0:
        return "plain"
    return "1 step" if num_steps == 1 else f"{num_steps} steps"
