"""`specserve policy replay`: from its arguments to the report, the figure and the file."""

import json
from argparse import Namespace
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tqdm import tqdm

from specserve.calibration.read import read_calibration
from specserve.errors import ConfigError, Problem
from specserve.replay.arguments import help_text, parse_arguments
from specserve.replay.candidates import read_candidates
from specserve.replay.comparison import Comparison, common_costs, compare
from specserve.replay.costs import Costs
from specserve.replay.document import document
from specserve.replay.load import choose_load, flag_problems
from specserve.replay.plot import plot_problems, save_plot
from specserve.replay.text import report
from specserve.rule_ids import RuleId


def replay_policies(argv: Sequence[str]) -> str:
    """Do what the arguments say; the text for stdout. Raises ConfigError."""
    args = parse_arguments(argv)
    if args.help:
        return help_text()
    problems = [*flag_problems(args), *_output_problems(args)]
    if problems:
        raise ConfigError(problems)
    comparison, costs = _compared(args)
    if args.json is not None:
        text = json.dumps(document(comparison), indent=1) + "\n"
        _write("--json", args.json, lambda path: path.write_text(text, encoding="utf-8"))
    if args.plot is not None:
        _write("--plot", args.plot, lambda path: save_plot(comparison, costs, path))
    return report(comparison)


def _compared(args: Namespace) -> tuple[Comparison, Costs]:
    path = str(args.calibration)
    calibration = read_calibration(path, key="--calibration")
    candidates = read_candidates(args.overrides, args.config_dir, args.calibration, calibration)
    costs = common_costs(calibration, candidates)
    policies = [candidate.config.policy for candidate in candidates]
    trace = choose_load(args, policies, calibration, costs)
    # On a terminal only, and only if it takes long enough to wonder.
    with tqdm(
        total=trace.seconds * len(candidates),
        bar_format="replaying {percentage:3.0f}% |{bar}| {remaining} left",
        disable=None,
        delay=1,
        leave=False,
    ) as bar:
        comparison = compare(
            trace,
            candidates,
            costs,
            calibration=calibration,
            calibration_path=path,
            seed=args.seed,
            advanced=bar.update,
        )
    return comparison, costs


def _output_problems(args: Namespace) -> Iterator[Problem]:
    """What would be found out after a long replay only."""
    if args.plot is not None:
        yield from plot_problems(args.plot)
    for name in ("plot", "json"):
        path = getattr(args, name)
        if path is not None and not path.absolute().parent.is_dir():
            yield _unwritable(f"--{name}", path, "its folder is not there")


def _write(flag: str, path: Path, write: Callable[[Path], object]) -> None:
    try:
        write(path)
    except OSError as error:
        raise ConfigError([_unwritable(flag, path, error.strerror or str(error))]) from error


def _unwritable(flag: str, path: Path, why: str) -> Problem:
    return Problem(
        rule=RuleId.UNWRITABLE_FILE,
        key=flag,
        value=str(path),
        expected=f"a file that can be written ({why})",
        fix="name a file in a folder that is there and can be written to",
    )
