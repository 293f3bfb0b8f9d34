"""Files of a configuration as people know them."""

from pathlib import Path

from specserve.config.compose import config_directory


def place(file: Path) -> str:
    """`conf/policy/off.yaml` for a shipped file; another as seen from the current directory."""
    shipped = config_directory()
    for root in (shipped.parent, Path.cwd()):
        inside = shipped if root == shipped.parent else root
        if file.is_relative_to(inside):
            return str(file.relative_to(root))
    return str(file)


def line_of(file: Path, line: int | None) -> str:
    """`conf/policy/off.yaml:2`."""
    return place(file) if line is None else f"{place(file)}:{line}"
