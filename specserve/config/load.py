"""From the overrides of a command line to a validated run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specserve.config.compose import compose_run
from specserve.config.run import RunConfig
from specserve.config.validate import parse_run
from specserve.errors import ConfigError


@dataclass(frozen=True, slots=True)
class LoadedRun:
    """A valid run, and the directory that `hydra.run.dir` asked for (None: choose one)."""

    config: RunConfig
    run_directory: Path | None


def load_run(overrides: Sequence[str], config_dirs: Sequence[Path] = ()) -> LoadedRun:
    """Compose and validate. Raises ConfigError with every problem that could be found."""
    composition = compose_run(overrides, config_dirs)
    try:
        config = parse_run(composition.tree)
    except ConfigError as error:
        named = {problem.key.lstrip("+") for problem in composition.problems}
        more = [problem for problem in error.problems if problem.key not in named]
        raise ConfigError([*composition.problems, *more]) from error
    if composition.problems:
        raise ConfigError(composition.problems)
    return LoadedRun(config, composition.run_directory)
