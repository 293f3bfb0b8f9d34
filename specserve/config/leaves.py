"""A tree of plain data as dotted keys."""

from collections.abc import Iterator, Mapping
from typing import Any


def leaves(tree: Mapping[str, Any], path: str = "") -> Iterator[tuple[str, object]]:
    """Dotted keys and values, in the order of the tree; a list is one value."""
    for name, value in tree.items():
        key = f"{path}.{name}" if path else str(name)
        if isinstance(value, Mapping) and value:
            yield from leaves(value, key)
        else:
            yield key, value
