"""The import picture: who may know whom. A part that is not in it fails the last test."""

import ast
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "specserve"

ALLOWED: dict[str, set[str]] = {
    "errors": set(),
    "config": {"errors"},
    "log": {"config"},
    "policy": {"config", "errors"},
    "engine": {"config", "errors"},
    "checkpoint": {"config", "errors"},
    "facts": {"checkpoint", "config", "errors"},
    "plan": {"checkpoint", "config", "errors", "facts"},
    "worker": {"config", "engine", "errors", "facts", "plan"},
    "torch_engine": {"config", "engine", "errors", "plan", "policy", "worker"},
    "server": {"config", "engine", "errors", "facts", "plan"},
    "testing": {"config", "engine", "errors", "plan", "policy", "torch_engine"},
    "check": {"config", "errors", "facts", "plan"},
    "serve": {"config", "engine", "errors", "facts", "log", "plan", "server", "worker"},
    "cli": {"check", "config", "errors", "log", "serve"},
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

    assert found <= ALLOWED[part], f"{part} also imports {sorted(found - ALLOWED[part])}"


def test_the_picture_names_every_part() -> None:
    parts = {p.stem for p in PACKAGE.glob("*.py")} | {
        p.name for p in PACKAGE.iterdir() if p.is_dir() and any(p.rglob("*.py"))
    }

    assert set(ALLOWED) == parts - {"__init__"}
