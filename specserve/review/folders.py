"""Which folders of a repository hold configuration, and where their copies lie."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from specserve.config.compose import CONFIG_NAME, config_directory
from specserve.errors import ConfigError, Problem
from specserve.review.git import Repository
from specserve.rule_ids import RuleId


@dataclass(frozen=True, slots=True, kw_only=True)
class ConfigFolders:
    """`conf` and `own` are folders inside the repository; None: the installed conf/ is outside.

    `outside` are folders of users elsewhere: the same on both sides.
    """

    repository: Repository
    conf: PurePosixPath | None
    own: tuple[PurePosixPath, ...]
    outside: tuple[Path, ...]

    @property
    def inside(self) -> tuple[PurePosixPath, ...]:
        """All that can differ between two revisions."""
        return (*((self.conf,) if self.conf is not None else ()), *self.own)


@dataclass(frozen=True, slots=True, kw_only=True)
class Roots:
    """Folders to compose from: the primary tree, and those that are searched after it."""

    conf: Path
    config_dirs: tuple[Path, ...]

    @property
    def has_primary(self) -> bool:
        """Whether there is anything to compose."""
        return (self.conf / f"{CONFIG_NAME}.yaml").is_file()

    def experiments(self) -> dict[str, tuple[Path, ...]]:
        """By name, sorted: every file of that name in the order of the search; the first counts."""
        found: dict[str, list[Path]] = {}
        for folder in (self.conf, *self.config_dirs):
            for file in sorted((folder / "experiment").glob("*.yaml")):
                if not file.name.startswith("_"):
                    found.setdefault(file.stem, []).append(file)
        return {name: tuple(found[name]) for name in sorted(found)}


def find_folders(repository: Repository, config_dirs: Sequence[Path]) -> ConfigFolders:
    """Raises ConfigError if no folder is in the repository, or one elsewhere is not there.

    Whether a folder inside is there depends on the revision.
    """
    top, shipped = repository.top, config_directory().resolve()
    places = [folder.resolve() for folder in config_dirs]
    own = tuple(PurePosixPath(p.relative_to(top)) for p in places if p.is_relative_to(top))
    conf = PurePosixPath(shipped.relative_to(top)) if shipped.is_relative_to(top) else None
    if conf is not None and not repository.working_entries(conf):
        conf = None  # installed into an ignored folder, such as a virtual environment
    outside = tuple(place for place in places if not place.is_relative_to(top))
    absent = [place for place in outside if not place.is_dir()]
    if absent:
        raise ConfigError([absent_folder(str(place)) for place in absent])
    if conf is None and not own:
        raise ConfigError([_no_configuration(top, config_dirs)])
    return ConfigFolders(repository=repository, conf=conf, own=own, outside=outside)


def roots_in(folders: ConfigFolders, copy: Path) -> Roots:
    """The folders of one side, whose files were copied to `copy`."""
    conf = config_directory() if folders.conf is None else copy / folders.conf
    own = [copy / folder for folder in folders.own]
    present = [folder for folder in (*own, *folders.outside) if folder.is_dir()]
    return Roots(conf=conf, config_dirs=tuple(present))


def absent_folder(folder: str) -> Problem:
    """A folder that is nowhere, which is a slip of the pen rather than an empty configuration."""
    return Problem(
        rule=RuleId.NO_CONFIG_FOLDER,
        key="--config-dir",
        value=folder,
        expected="a folder that exists",
        fix="correct its name; it counts from the current directory",
    )


def _no_configuration(top: Path, config_dirs: Sequence[Path]) -> Problem:
    given = ", ".join(map(str, config_dirs)) or None
    return Problem(
        rule=RuleId.NO_CONFIG_FOLDER,
        key="--config-dir",
        value=given,
        expected=f"a folder of your own configs inside the repository {top}",
        fix="name it with --config-dir DIR",
    )
