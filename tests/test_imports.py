"""The import picture: who may know whom. A part that is not in it fails the last test."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "specserve"

ALLOWED: dict[str, set[str]] = {
    "rule_ids": set(),
    "errors": set(),
    "config": {"errors"},
    "log": {"config"},
    "calibration": {"config", "errors"},
    "policy": {"calibration", "config", "errors"},
    "engine": {"config", "errors"},
    "checkpoint": {"config", "errors"},
    "facts": {"checkpoint", "config", "errors"},
    "plan": {"calibration", "checkpoint", "config", "errors", "facts", "policy"},
    "worker": {"config", "engine", "errors", "facts", "plan"},
    "torch_engine": {"calibration", "config", "engine", "errors", "plan", "policy", "worker"},
    "sglang_engine": {"checkpoint", "config", "errors", "plan"},
    "server": {"config", "engine", "errors", "facts", "plan"},
    "testing": {"calibration", "config", "engine", "errors", "plan", "policy", "torch_engine"},
    "rulebook": set(),
    "check": {
        "checkpoint",
        "config",
        "errors",
        "facts",
        "flags",
        "origin",
        "plan",
        "rulebook",
        "sglang_engine",
    },
    "export": {"config", "errors", "plan"},
    "flags": {"errors"},
    "replay": {"calibration", "config", "errors", "flags", "policy"},
    "explain_policy": {
        "calibration",
        "check",
        "config",
        "errors",
        "flags",
        "plan",
        "policy",
        "replay",
    },
    "origin": {"config"},
    "explain": {
        "check",
        "config",
        "errors",
        "facts",
        "flags",
        "origin",
        "plan",
        "sglang_engine",
    },
    "review": {
        "calibration",
        "check",
        "checkpoint",
        "config",
        "errors",
        "explain",
        "facts",
        "flags",
        "plan",
        "policy",
        "rulebook",
    },
    "serve": {"config", "engine", "errors", "facts", "log", "plan", "server", "worker"},
    "schema": {"config", "errors", "flags", "rule_ids"},
    "completion": set(),
    "cli": {
        "check",
        "completion",
        "config",
        "errors",
        "explain",
        "explain_policy",
        "export",
        "flags",
        "log",
        "replay",
        "review",
        "schema",
        "serve",
    },
    "__main__": {"cli"},
}


def _imports(path: Path) -> set[str]:
    """Parts of specserve that one file imports, wherever in the file."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        names: list[str] = []
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [node.module]
            if node.module == "specserve":
                names = [f"specserve.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        found.update(name.split(".")[1] for name in names if name.startswith("specserve."))
    return found - {"__version__"}


@pytest.mark.parametrize("part", sorted(ALLOWED))
def test_imports_only_what_the_picture_allows(part: str) -> None:
    files = [PACKAGE / f"{part}.py", *(PACKAGE / part).rglob("*.py")]
    found: set[str] = set().union(*(_imports(f) for f in files if f.exists())) - {part}
    # The ids are the names by which errors are told: who knows errors knows them.
    tells = part in ("errors", "rulebook") or "errors" in ALLOWED[part]
    allowed = ALLOWED[part] | ({"rule_ids"} if tells else set())

    assert found <= allowed, f"{part} also imports {sorted(found - allowed)}"


def test_the_picture_names_every_part() -> None:
    parts = {p.stem for p in PACKAGE.glob("*.py")} | {
        p.name for p in PACKAGE.iterdir() if p.is_dir() and any(p.rglob("*.py"))
    }

    assert set(ALLOWED) == parts - {"__init__"}
