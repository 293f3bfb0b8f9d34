"""Compose conf/ with Hydra into plain data. Hydra and OmegaConf end in this module."""

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from hydra import compose, initialize_config_dir
from hydra.core.override_parser.overrides_parser import OverridesParser
from hydra.errors import HydraException, MissingConfigException
from omegaconf import DictConfig, ListConfig, OmegaConf, open_dict
from omegaconf.errors import OmegaConfBaseException

from specserve.config.composition_problems import (
    bad_yaml,
    boolean_option,
    missing_option,
    not_utf8,
    refused_by_hydra,
)
from specserve.config.override_problems import Flaw, ParsedOverride, override_flaw, unreadable
from specserve.config.paths import absolute_path
from specserve.config.quote import quote
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId

CONFIG_NAME = "config"

_PATH_KEYS = ("model.path", "model.draft_path", "speculation.draft.path", "policy.calibration")
_REFUSALS = (HydraException, OmegaConfBaseException, yaml.YAMLError)
_PACKAGE = Path(__file__).resolve().parent.parent


@dataclass(frozen=True, slots=True)
class Composition:
    """The composed run as plain data, and the run directory if `hydra.run.dir` was given.

    `problems` are those of overrides that were flawed: the tree then holds what was meant, so that
    what else is wrong can be found and reported with them.
    """

    tree: dict[str, Any]
    run_directory: Path | None
    problems: tuple[Problem, ...]


def config_directory() -> Path:
    """The shipped conf/: inside the package in a wheel, beside it in a checkout."""
    packaged = _PACKAGE / "conf"
    return packaged if packaged.is_dir() else _PACKAGE.parent / "conf"


def compose_tree(
    overrides: Sequence[str] = (), config_dirs: Sequence[Path] = (), *, conf: Path | None = None
) -> dict[str, Any]:
    """The configuration that `overrides` (in Hydra's grammar) select, as plain data.

    `config_dirs` are searched after the shipped conf/. Every interpolation is resolved and paths
    are absolute as seen from the current directory. `conf`, absolute, is a tree to take instead of
    the shipped one: that of another revision. Keys are not checked here: see parse_run.
    Raises ConfigError with all problems of one stage: the overrides, the files, the references.
    """
    composition = compose_run(overrides, config_dirs, conf=conf)
    if composition.problems:
        raise ConfigError(composition.problems)
    return composition.tree


def compose_run(
    overrides: Sequence[str], config_dirs: Sequence[Path] = (), *, conf: Path | None = None
) -> Composition:
    """As compose_tree, with the run directory, and with mended overrides where that is certain."""
    search_path = search_path_override(overrides, config_dirs)
    shipped = conf or config_directory()
    accepted, flawed = _accepted(overrides, [shipped, *config_dirs])
    with initialize_config_dir(str(shipped), version_base="1.3"):
        try:
            config = compose(CONFIG_NAME, [*search_path, *accepted], return_hydra_config=True)
            run_directory = _run_directory(config)
        except (*_REFUSALS, OSError, RecursionError, ValueError) as error:
            # Hydra raises ValueError bare for booleans in a defaults list, OSError for a file that
            # is one plain value; and it follows defaults lists that lead back to themselves.
            raise ConfigError([*flawed, _composition_problem(error, config_dirs)]) from error
        with open_dict(config):
            del config["hydra"]
    problems = list(_unresolved(config, "", OmegaConf.to_container(config, resolve=False)))
    if problems:
        raise ConfigError([*flawed, *problems])
    tree: Any = OmegaConf.to_container(config, resolve=True, throw_on_missing=True)
    return Composition(_with_absolute_paths(tree, Path.cwd()), run_directory, tuple(flawed))


def search_path_override(overrides: Sequence[str], config_dirs: Sequence[Path]) -> list[str]:
    if not config_dirs:
        return []
    problems = [
        Problem(
            rule=RuleId.NO_CONFIG_FOLDER,
            key="--config-dir",
            value=str(folder),
            expected="a folder that exists",
            fix=f"create {folder.absolute()}, or name another folder",
        )
        for folder in config_dirs
        if not folder.is_dir()
    ]
    own = [text for text in overrides if text.startswith("hydra.searchpath=")]
    if own:
        problems.append(
            Problem(
                rule=RuleId.TWO_SEARCH_PATHS,
                key="hydra.searchpath",
                value=own[0].partition("=")[2],
                expected="either hydra.searchpath or --config-dir",
                fix="give every folder with --config-dir",
            )
        )
    if problems:
        raise ConfigError(problems)
    folders = ",".join(quote(f"file://{folder.absolute()}") for folder in config_dirs)
    return [f"hydra.searchpath=[{folders}]"]


def _accepted(overrides: Sequence[str], folders: Sequence[Path]) -> tuple[list[str], list[Problem]]:
    """The overrides for Hydra, and the problems of those that had to be mended.

    Raises ConfigError if it is not certain what a flawed one means.
    """
    parser = OverridesParser.create()
    accepted: list[str] = []
    flaws: list[Flaw] = []
    for text in overrides:
        parsed = _parsed(parser, text, folders)
        flaw = unreadable(text) if parsed is None else override_flaw(parsed)
        if flaw is not None:
            flaws.append(flaw)
            parsed = _parsed(parser, flaw.meant or "", folders)
        if parsed is not None:
            accepted.append(_forced(parsed))
    problems = [flaw.problem for flaw in flaws]
    if any(flaw.meant is None for flaw in flaws):
        raise ConfigError(problems)
    return accepted, problems


def _parsed(parser: OverridesParser, text: str, folders: Sequence[Path]) -> ParsedOverride | None:
    """`text` as Hydra reads it, or None if it does not."""
    try:
        override = parser.parse_override(text)
    except HydraException:
        return None
    key = override.key_or_group
    if not key:
        return None
    sign = re.match(r"~|\+{0,2}", text)
    is_sweep = override.is_sweep_override()
    value = None if is_sweep else override.value()
    can_choose = "." not in key and not override.is_delete() and not isinstance(value, dict)
    return ParsedOverride(
        text=text,
        sign=sign[0] if sign else "",
        key=key,
        value=value,
        is_sweep=is_sweep,
        options=_options(key, folders) if can_choose else (),
    )


def _options(group: str, folders: Sequence[Path]) -> tuple[str, ...]:
    """What can be chosen for `group`, sorted; Hydra's loader tells the same in a tenth of a run."""
    names = {file.stem for folder in folders for file in (folder / group).glob("*.yaml")}
    return tuple(sorted(name for name in names if not name.startswith("_")))


def _forced(override: ParsedOverride) -> str:
    """The override in a form that Hydra takes even for an unknown key.

    Hydra stops at the first unknown key; parse_run names them all, with what was meant.
    """
    sets_a_value = not override.sign and not override.options
    ours = not override.key.startswith("hydra.") and "@" not in override.text.partition("=")[0]
    return f"++{override.text}" if sets_a_value and ours else override.text


def _composition_problem(error: Exception, config_dirs: Sequence[Path]) -> Problem:
    match error:
        case MissingConfigException(missing_cfg_file=str(missing)):
            return missing_option(missing, list(error.options or ()), str(error))
        case yaml.MarkedYAMLError(problem_mark=yaml.Mark() as mark):
            return bad_yaml(mark.name, mark.line + 1, str(error.problem))
        case UnicodeDecodeError() | yaml.reader.ReaderError():
            return not_utf8(config_dirs)
        case RecursionError():
            return refused_by_hydra("a defaults list leads back to itself")
        case _:
            return _hydra_problem(error)


def _hydra_problem(error: Exception) -> Problem:
    if "Unsupported item value in defaults" in str(error):
        return boolean_option()
    message = str(error) or str(error.__cause__)
    if "not in '" in str(error.__cause__):  # a key of Hydra's own: its advice to append misleads
        message = str(error.__cause__)
    return refused_by_hydra(message)


def _unresolved(node: DictConfig | ListConfig, path: str, raw: object) -> Iterator[Problem]:
    """Missing values and broken references below `node`, wherever they stand."""
    if isinstance(raw, dict):
        entries = list(raw.items())
    else:
        entries = list(enumerate(raw)) if isinstance(raw, list) else []
    for name, text in entries:
        key = f"{path}.{name}" if path else str(name)
        if isinstance(text, dict | list):
            yield from _unresolved(node[name], key, text)
        elif OmegaConf.is_missing(node, name):
            yield Problem(
                rule=RuleId.VALUE_REQUIRED,
                key=key,
                value="???",
                expected="a value: it is required",
                fix=f"set {key}=VALUE",
            )
        elif OmegaConf.is_interpolation(node, name):
            try:
                node[name]
            except (OmegaConfBaseException, ValueError) as error:
                yield _broken_reference(key, text, error)


def _broken_reference(key: str, text: str, error: Exception) -> Problem:
    reason = str(error).splitlines()[0]
    environment = re.search(r"\$\{oc\.env:([^,}]+)\}", text)
    if environment:
        expected = f"the environment variable {environment[1]}, which is not set"
        fix = f"export {environment[1]}=VALUE, or set {key}=VALUE"
    else:
        target = re.search(r"\$\{([^${}]*)\}", text)
        expected = f"a reference that leads somewhere: {target[1] if target else text} ({reason})"
        fix = f"set {key}=VALUE, or correct the reference"
    return Problem(rule=RuleId.BROKEN_REFERENCE, key=key, value=text, expected=expected, fix=fix)


def _run_directory(config: DictConfig) -> Path | None:
    given = any(text.startswith("hydra.run.dir=") for text in config.hydra.overrides.hydra)
    return Path.cwd() / str(config.hydra.run.dir) if given else None


def _with_absolute_paths(tree: dict[str, Any], caller: Path) -> dict[str, Any]:
    """`tree` with its paths absolute; wrong types are left for parse_run to name."""
    for key in _PATH_KEYS:
        *sections, name = key.split(".")
        node: Any = tree
        for section in sections:
            node = node.get(section) if isinstance(node, dict) else None
        if isinstance(node, dict) and isinstance(node.get(name), str) and node[name]:
            node[name] = absolute_path(node[name], caller)
    return tree
