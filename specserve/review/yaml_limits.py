"""YAML of strangers: whether a file may be read at all.

A configuration file is small. One that is huge, deep, or grows by its aliases would take the
composition minutes and gigabytes, so it is refused before Hydra sees it.
"""

from collections.abc import Iterator

import yaml

LARGEST_BYTES = 256 << 10
MOST_VALUES = 20_000
DEEPEST = 40

# libyaml's parser where it is there: the same events, twenty times as fast.
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


class YamlRefused(Exception):
    """Why a file is not read; `line` counts from 1."""

    def __init__(self, line: int, found: str, expected: str) -> None:
        self.line = line
        self.found = found
        self.expected = expected
        super().__init__(found)


def check_yaml(contents: bytes) -> None:
    """Return if Hydra may read `contents`. Raises YamlRefused."""
    if len(contents) > LARGEST_BYTES:
        raise YamlRefused(
            1, f"{len(contents):,} bytes", f"a configuration of at most {LARGEST_BYTES:,} bytes"
        )
    try:
        text = contents.decode("utf-8")
    except UnicodeDecodeError as error:
        line = contents.count(b"\n", 0, error.start) + 1
        raise YamlRefused(line, f"byte {contents[error.start]:#04x}", "text in UTF-8") from error
    try:
        _measure(yaml.parse(text, Loader=_Loader))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark
        line = mark.line + 1 if mark else 1
        raise YamlRefused(line, str(error.problem), "YAML that can be read") from error
    except yaml.YAMLError as error:  # a character that YAML does not allow
        first = str(error).splitlines()[0]
        raise YamlRefused(1, first, "text, without control characters") from error


def _measure(events: Iterator[yaml.Event]) -> None:
    """Count values with aliases written out, without writing them out."""
    sizes: dict[str | None, int] = {}
    open_nodes: list[tuple[str | None, int]] = []
    count = 0
    for event in events:
        match event:
            case yaml.AliasEvent():
                _refuse_inside_itself(event, [anchor for anchor, _ in open_nodes])
                count += sizes.get(event.anchor, 1)
            case yaml.ScalarEvent():
                count += 1
                sizes[event.anchor] = 1
            case yaml.CollectionStartEvent():
                open_nodes.append((event.anchor, count))
                count += 1
            case yaml.CollectionEndEvent():
                anchor, before = open_nodes.pop()
                sizes[anchor] = count - before
            case _:
                continue  # the beginning and the end of the stream and of its documents
        _refuse(event, count, len(open_nodes))


def _refuse_inside_itself(event: yaml.AliasEvent, open_anchors: list[str | None]) -> None:
    if event.anchor in open_anchors:
        line = _line(event)
        raise YamlRefused(line, f"*{event.anchor} inside &{event.anchor}", "values that end")


def _refuse(event: yaml.Event, count: int, depth: int) -> None:
    line = _line(event)
    if count > MOST_VALUES:
        raise YamlRefused(
            line,
            "aliases that grow beyond it",
            f"at most {MOST_VALUES:,} values, aliases written out",
        )
    if depth > DEEPEST:
        raise YamlRefused(line, "deeper nesting", f"at most {DEEPEST} levels of nesting")


def _line(event: yaml.Event) -> int:
    return event.start_mark.line + 1 if event.start_mark else 1
