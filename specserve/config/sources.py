"""Which files a composition is made of, in the order in which Hydra merges them."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from hydra import initialize_config_dir
from hydra.core.config_loader import ConfigLoader
from hydra.core.default_element import ResultDefault
from hydra.core.global_hydra import GlobalHydra
from hydra.types import RunMode
from omegaconf import OmegaConf

from specserve.config.compose import CONFIG_NAME, config_directory, search_path_override


@dataclass(frozen=True, slots=True, kw_only=True)
class MergedFile:
    """A file, the option that it is (`policy/always`), and the section that its keys go into."""

    path: Path
    option: str
    package: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ValueOverride:
    """An override of a value, as typed; `value` is plain data. `~key` deletes."""

    text: str
    key: tuple[str, ...]
    value: object
    deletes: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Sources:
    """Later ones win: the files in their order, then the overrides in theirs.

    `choices` are the overrides that choose an option of a group, as typed, by group.
    """

    files: tuple[MergedFile, ...]
    overrides: tuple[ValueOverride, ...]
    choices: dict[str, str]


def read_sources(
    overrides: Sequence[str], config_dirs: Sequence[Path] = (), *, conf: Path | None = None
) -> Sources:
    """The sources of a composition that `compose_run` makes without a problem; without Hydra's own.

    A file of the shipped conf/ hides one of the same name in `config_dirs`.
    """
    given = [*search_path_override(overrides, config_dirs), *overrides]
    folders = [conf or config_directory(), *(folder.absolute() for folder in config_dirs)]
    with initialize_config_dir(str(folders[0]), version_base="1.3"):
        loader = GlobalHydra.instance().config_loader()
        found = loader.compute_defaults_list(CONFIG_NAME, given, RunMode.RUN)
        choices = _choices(overrides, loader, given)
    return Sources(
        files=tuple(_merged_files(found.defaults, folders)),
        overrides=tuple(
            ValueOverride(
                text=str(one.input_line),
                key=tuple(one.key_or_group.split(".")),
                value=_plain(one.value()),
                deletes=one.is_delete(),
            )
            for one in found.config_overrides
            if one.key_or_group.partition(".")[0] != "hydra"
        ),
        choices=choices,
    )


def _merged_files(defaults: Iterable[ResultDefault], folders: Sequence[Path]) -> list[MergedFile]:
    files = []
    for default in defaults:
        option = default.config_path or ""
        places = [folder / f"{option}.yaml" for folder in folders]
        path = next((place for place in places if place.is_file()), None)
        if path is None or option.startswith("hydra/"):
            continue  # Hydra's own
        package = default.package or ""
        files.append(
            MergedFile(
                path=path, option=option, package=tuple(package.split(".")) if package else ()
            )
        )
    return files


def _choices(overrides: Sequence[str], loader: ConfigLoader, given: list[str]) -> dict[str, str]:
    chosen = {}
    for text in overrides:
        group = text.partition("=")[0].lstrip("+")
        if "." not in group and loader.get_group_options(
            group, config_name=CONFIG_NAME, overrides=given[: len(given) - len(overrides)]
        ):
            chosen[group] = text
    return chosen


def _plain(value: object) -> object:
    """Hydra's own types of text, quoted or not, become str."""
    return OmegaConf.to_container(OmegaConf.create({"value": value}), resolve=False)["value"]  # type: ignore[call-overload,index]
