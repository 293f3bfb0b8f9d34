"""Write any value so that Hydra's command line reads it back: overrides are not built by hand."""

import re
import shlex

_PLAIN = re.compile(r"[A-Za-z_/][A-Za-z0-9_./:@%+-]*")
_READ_AS_SOMETHING_ELSE = re.compile(r"(?i)true|false|null|nan|inf")


def quote(text: str) -> str:
    """`text` as a quoted Hydra value; interpolations in it lose their meaning.

    Raises ValueError for "???", which means a missing value in every form.
    """
    if text == "???":
        raise ValueError('"???" marks a missing value and cannot be written as text')
    # A reference is text when a backslash precedes it, and then the ones before count double.
    literal = re.sub(r"(\\*)\$\{", r"\1\1\\${", text)
    closed = re.sub(r'(\\+)(?="|\Z)', r"\1\1", literal)
    return '"' + closed.replace('"', r"\"") + '"'


def hydra_value(value: object) -> str:
    """`value` (plain data) as the right-hand side of an override; quoted only where needed."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            plain = _PLAIN.fullmatch(value) and not _READ_AS_SOMETHING_ELSE.fullmatch(value)
            return value if plain else quote(value)
        case dict():
            return "{" + ",".join(f"{k}:{hydra_value(v)}" for k, v in value.items()) + "}"
        case list() | tuple():
            return "[" + ",".join(map(hydra_value, value)) + "]"
        case _:
            return str(value)


def override(key: str, value: object) -> str:
    """`key=value` as Hydra reads it, for programs that compose."""
    return f"{key}={hydra_value(value)}"


def shell_override(key: str, value: object) -> str:
    """`key=value` as typed into a shell."""
    return shlex.quote(override(key, value))
