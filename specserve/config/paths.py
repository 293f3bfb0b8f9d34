"""What a checkpoint path in the configuration means: a folder, a bundled pair, or a hub id."""

import re
from pathlib import Path

BUNDLED = "bundled:"

_PACKAGE = Path(__file__).resolve().parent.parent
_HUB_ID = re.compile(r"[A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*")


def resolve_path(path: str) -> Path:
    """The place on this machine that `path` names; whether anything lies there is not asked.

    `bundled:NAME` is NAME inside the installed package. Everything else is taken as it stands.
    """
    if path.startswith(BUNDLED):
        return _PACKAGE / path.removeprefix(BUNDLED)
    return Path(path)


def name_of_path(path: str) -> str:
    """What a model at `path` is called: the last part, and specserve-NAME for a bundled pair."""
    if path.startswith(BUNDLED):
        return f"specserve-{path.removeprefix(BUNDLED).partition('/')[0]}"
    return Path(path).name or path


def is_hub_id(path: str) -> bool:
    """True for `ORGANISATION/NAME`, unless a folder of that name lies in the current directory.

    Configurations that come from Hydra have local folders absolute already (`absolute_path`).
    """
    return _HUB_ID.fullmatch(path) is not None and not Path(path).exists()


def absolute_path(path: str, caller: Path) -> str:
    """`path` as seen from the directory `caller`, absolute; bundled names and hub ids stay.

    `ORGANISATION/NAME` is a hub id unless such a folder lies under `caller`; write `./A/B` for a
    folder that is still to come.
    """
    if path.startswith(BUNDLED):
        return path
    place = caller / Path(path).expanduser()
    if _HUB_ID.fullmatch(path) and not place.exists():
        return path
    # No symlink is followed: the record keeps the name that the user knows.
    return str(Path(*_without_dots(place.parts)))


def _without_dots(parts: tuple[str, ...]) -> list[str]:
    kept: list[str] = []
    for part in parts:
        if part == "..":
            kept[1:] = kept[1:-1]
        elif part != ".":
            kept.append(part)
    return kept
