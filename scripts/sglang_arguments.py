#!/usr/bin/env python
"""Read SGLang's releases, for the tests of specserve/sglang_engine.

    pip download --no-deps --dest WHEELS sglang==0.5.17     (and each other supported release)
    python scripts/sglang_arguments.py WHEELS

tests/data/sglang/arguments.json: every server argument, by name, with the releases that have it.
tests/data/sglang/evidence.json: in which releases the texts stand that the table of versions cites.

Nothing is imported from SGLang: the fields of `ServerArgs` are read off the wheels' syntax trees.
The releases up to 0.5.19 declare them in server_args.py, the later ones in arg_groups/fields/.
"""

import ast
import json
import sys
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any
from zipfile import ZipFile

from specserve.sglang_engine.table import ROWS
from specserve.sglang_engine.versions import SUPPORTED, Evidence

OUTPUT = Path(__file__).parent.parent / "tests" / "data" / "sglang"
_SERVER_ARGS = "sglang/srt/server_args.py"
_FIELDS = "sglang/srt/arg_groups/fields/"
_CHOICES = "sglang/srt/arg_groups/choices.py"


def release_of(wheel: Path) -> str:
    """The version in a wheel's name."""
    return wheel.name.split("-")[1]


def arguments(wheel: Path) -> Iterator[dict[str, Any]]:
    """Each command-line name with its field and what it accepts."""
    with ZipFile(wheel) as archive:
        names = set(archive.namelist())
        texts = [name for name in names if name.startswith(_FIELDS)] or [_SERVER_ARGS]
        choice_lists: dict[str, list[str]] = {}
        for name in (_SERVER_ARGS, _CHOICES):
            if name in names:
                choice_lists |= _string_lists(ast.parse(archive.read(name)))
        for name in sorted(texts):
            for field, declared in _declarations(ast.parse(archive.read(name))):
                yield from _argument(field, declared, choice_lists)
        yield from _hand_registered(ast.parse(archive.read(_SERVER_ARGS)))


def _declarations(tree: ast.Module) -> Iterator[tuple[str, list[ast.expr]]]:
    """Fields of the form `name: A[type, help or Arg(...)] = default`: name and what is in A."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.AnnAssign) or not isinstance(node.annotation, ast.Subscript):
            continue
        inner = node.annotation.slice
        if ast.unparse(node.annotation.value) == "A" and isinstance(inner, ast.Tuple):
            yield ast.unparse(node.target), inner.elts


def _argument(
    field: str, declared: list[ast.expr], choice_lists: dict[str, list[str]]
) -> Iterator[dict[str, Any]]:
    form, *metadata = declared
    settings = {
        keyword.arg: keyword.value
        for call in metadata
        if isinstance(call, ast.Call)
        for keyword in call.keywords
    }
    if "no_cli" in settings:
        return
    flag = ast.literal_eval(settings["cli_name"]) if "cli_name" in settings else _flag(field)
    aliases = ast.literal_eval(settings["aliases"]) if "aliases" in settings else []
    for name in (flag, *aliases):
        yield {
            "flag": name,
            "field": field,
            "switch": ast.unparse(form) == "bool",
            "choices": _choices(settings.get("choices"), choice_lists),
        }


def _hand_registered(tree: ast.Module) -> Iterator[dict[str, Any]]:
    """`parser.add_argument("--flag", dest=..., action=...)`: deprecated names, mostly."""
    for node in ast.walk(tree):
        if not (isinstance(node, ast.Call) and ast.unparse(node.func) == "parser.add_argument"):
            continue
        settings = {keyword.arg: ast.unparse(keyword.value) for keyword in node.keywords}
        for argument in node.args:
            flag = ast.literal_eval(argument)
            yield {
                "flag": flag,
                "field": settings.get("dest", "").strip("'\"") or _field(flag),
                "switch": "StoreTrue" in settings.get("action", ""),
                "choices": None,
            }


def _choices(node: ast.expr | None, choice_lists: dict[str, list[str]]) -> list[str] | None:
    """None where anything goes, or where the list is made at run time."""
    if node is None:
        return None
    if isinstance(node, ast.Name):
        return choice_lists.get(node.id)
    try:
        return [str(choice) for choice in ast.literal_eval(node)]
    except ValueError:
        return None


def _string_lists(tree: ast.Module) -> dict[str, list[str]]:
    lists = {}
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.List):
            strings = [e.value for e in node.value.elts if isinstance(e, ast.Constant)]
            lists[ast.unparse(node.targets[0])] = [str(text) for text in strings]
    return lists


def _flag(field: str) -> str:
    return "--" + field.replace("_", "-")


def _field(flag: str) -> str:
    return flag.removeprefix("--").replace("-", "_")


def main() -> None:
    wheels = {release_of(wheel): wheel for wheel in Path(sys.argv[1]).glob("sglang-*.whl")}
    missing = sorted(set(SUPPORTED) - set(wheels))
    if missing:
        sys.exit(f"{sys.argv[1]} lacks the wheels of {', '.join(missing)}")
    seen: dict[str, list[str]] = defaultdict(list)
    for release in SUPPORTED:
        for line in {json.dumps(argument) for argument in arguments(wheels[release])}:
            seen[line].append(release)
    # One line each, so that a new release shows as a readable change.
    _write("arguments.json", [json.loads(line) | _range(found) for line, found in seen.items()])
    _write("evidence.json", list(evidence(wheels)))


def evidence(wheels: Mapping[str, Path]) -> Iterator[dict[str, object]]:
    """Where each text of the table stands, release by release."""
    wanted = {e for row in ROWS.values() for span in row.spans for e in span.evidence}
    for item in sorted(wanted, key=lambda e: (e.file, e.text)):
        found = [release for release in SUPPORTED if _holds(wheels[release], item)]
        yield {"file": item.file, "text": item.text, "releases": found}


def _holds(wheel: Path, item: Evidence) -> bool:
    name = f"sglang/srt/{item.file}"
    with ZipFile(wheel) as archive:
        return name in archive.namelist() and item.text in archive.read(name).decode()


def _range(releases: Sequence[str]) -> dict[str, str]:
    """First and last; an argument that went and came back would be two entries."""
    indices = [SUPPORTED.index(release) for release in releases]
    if indices != list(range(indices[0], indices[-1] + 1)):
        raise ValueError(f"not one range of releases: {releases}")
    return {"since": releases[0], "until": releases[-1]}


def _write(name: str, entries: list[dict[str, object]]) -> None:
    lines = sorted(json.dumps(entry) for entry in entries)
    (OUTPUT / name).write_text("[\n" + ",\n".join(lines) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
