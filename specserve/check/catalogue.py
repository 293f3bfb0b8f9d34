"""The files of a configuration: which option of which group lies where."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from specserve.config.compose import config_directory, search_path_override
from specserve.config.run import RunConfig
from specserve.errors import Doubt
from specserve.rule_ids import RuleId

EXPERIMENT = "experiment"
_NO_GROUPS = ("hydra",)  # settings of Hydra's own, which may lie in any folder


@dataclass(frozen=True, slots=True)
class Option:
    """One file that can be chosen: NAME of GROUP, an experiment among them."""

    group: str
    name: str
    file: Path

    @property
    def is_experiment(self) -> bool:
        """Whether it describes a whole run."""
        return self.group == EXPERIMENT


@dataclass(frozen=True, slots=True)
class Catalogue:
    """What Hydra finds in conf/ and then in the folders of `--config-dir`, in their order."""

    folders: tuple[Path, ...]
    options: tuple[Option, ...]
    doubts: tuple[tuple[Path, Doubt], ...]

    def file_of(self, group: str, name: str) -> Path | None:
        """The file behind group=name; None if there is none."""
        found = (o.file for o in self.options if (o.group, o.name) == (group, name))
        return next(found, None)


def find_catalogue(config_dirs: Sequence[Path]) -> Catalogue:
    """Every option of every group once; of two files with one name the first counts.

    Raises ConfigError for a folder that is not there.
    """
    search_path_override([], config_dirs)
    folders = (config_directory(), *(folder.absolute() for folder in config_dirs))
    options: dict[tuple[str, str], Option] = {}
    doubts: list[tuple[Path, Doubt]] = []
    for folder in folders:
        for option in _options(folder):
            first = options.setdefault((option.group, option.name), option)
            if first is not option:
                doubts.append((option.file, _shadowed(option, first)))
        doubts += [(file, _unused(file)) for file in _files_of_no_group(folder)]
    return Catalogue(folders, tuple(options.values()), tuple(doubts))


def _options(folder: Path) -> Iterator[Option]:
    for group in (EXPERIMENT, *RunConfig.model_fields):
        for file in sorted((folder / group).glob("*.yaml")):
            if not file.name.startswith("_"):  # made for other files, not to be chosen
                yield Option(group, file.stem, file)


def _files_of_no_group(folder: Path) -> Iterator[Path]:
    known = {EXPERIMENT, *RunConfig.model_fields, *_NO_GROUPS}
    for inner in sorted(folder.iterdir()):
        if inner.is_dir() and inner.name not in known and any(inner.glob("*.yaml")):
            yield inner


def _shadowed(option: Option, first: Option) -> Doubt:
    return Doubt(
        rule=RuleId.SHADOWED_FILE,
        key=option.group,
        text=f"{option.group}/{option.name} is also in {first.file.parent.parent}, which is "
        "searched first: this file never counts",
    )


def _unused(folder: Path) -> Doubt:
    return Doubt(
        rule=RuleId.FOLDER_OF_NO_GROUP,
        key=folder.name,
        text=f"the folder {folder.name} is no group of the configuration: its files were not "
        f"checked (groups: {', '.join((EXPERIMENT, *RunConfig.model_fields))})",
    )
