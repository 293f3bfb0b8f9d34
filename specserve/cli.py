"""The command line: `specserve [COMMAND] [OVERRIDES] [FLAGS]`. Overrides alone describe a run.

Exit codes: 0 done, 2 the configuration is wrong, 3 a build phase failed, 4 the engine broke while
running, 130 interrupted; anything unforeseen keeps its traceback and ends with 1.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from difflib import get_close_matches
from importlib.metadata import version
from pathlib import Path

from specserve import __version__
from specserve.completion import commands_for, for_hydra
from specserve.errors import ConfigError, Problem, SpecserveError
from specserve.flags import FlagParser, add_config_dir
from specserve.rule_ids import RuleId

COMMANDS = ("export",)
# Their flags follow them.
OWN_PARSERS = ("check", "policy replay", "explain-policy", "explain", "diff", "review", "schema")
INTERRUPTED = 130
READER_GONE = 141  # what a shell reports for a program that SIGPIPE has ended

_DESCRIBING = ("cfg", "info", "help", "hydra_help", "shell_completion")

# Flags of commands: how the value is called, and who takes it.
_OWN_FLAGS = {
    "facts": ("FILE", ("check",)),
    "to": ("ENGINE", ("export",)),
    "output": ("FILE", ("export",)),
    "drop": ("SETTINGS", ("export",)),
}


def main(argv: Sequence[str] | None = None) -> int:
    """Do what the command line says; the exit code. Problems go to stderr, one a line."""
    words = list(sys.argv[1:] if argv is None else argv)
    try:
        answer = _answer(words)
        if answer is None:
            return _dispatch(_parse(words))
        text, exit_code = answer
        print(text, flush=True)
        return exit_code
    except SpecserveError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:  # `specserve check … | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return READER_GONE


def _answer(words: Sequence[str]) -> tuple[str, int] | None:
    """What a command with flags of its own says, and the exit code.

    None if `words` begin with no such command.
    """
    match words:
        case ["check", *rest]:
            from specserve.check import check  # heavy: pydantic, Hydra; not needed for --version

            answer = check(rest)
            return answer.text, 0 if answer.sound else ConfigError.exit_code
        case ["policy", "replay", *rest]:
            from specserve.replay.command import replay_policies  # heavy

            return replay_policies(rest), 0
        case ["explain-policy", *rest]:
            from specserve.explain_policy import explain_policy  # heavy

            return explain_policy(rest), 0
        case ["explain", *rest]:
            from specserve.explain import explain_keys  # heavy

            return explain_keys(rest), 0
        case ["diff", *rest]:
            from specserve.review import diff_subjects  # heavy

            return diff_subjects(rest), 0
        case ["review", *rest]:
            from specserve.review import review_change  # heavy

            reviewed = review_change(rest)
            return reviewed.text, ConfigError.exit_code if reviewed.failed else 0
        case ["schema", *rest]:
            from specserve.schema import write_schemas  # heavy

            return write_schemas(rest), 0
        case _:
            return None


def _dispatch(args: argparse.Namespace) -> int:
    if args.version:
        print(f"specserve {__version__} (hydra {version('hydra-core')})")
        return 0
    command, overrides = _command(args.words)
    if any(getattr(args, flag) for flag in _DESCRIBING):
        return _describe(args, overrides)
    _refuse_what_is_not_there(args, command)
    if command == "export":
        from specserve.export import export_run  # heavy

        dropped = [name for names in args.drop for name in names.split(",")]
        export = export_run(
            overrides, args.config_dir, to=args.to, output=args.output, drop=dropped
        )
        print(export, end="", flush=True)
        return 0
    return _serve(overrides, args.config_dir)


def _serve(overrides: list[str], config_dirs: list[Path]) -> int:
    """Build the worker and serve. The machine is asked and torch is started from here on only."""
    from specserve.config.load import load_run  # heavy
    from specserve.config.warnings import config_warnings

    run = load_run(overrides, config_dirs)

    import structlog  # heavy, and of no use to a run that is refused

    from specserve.log import configure
    from specserve.serve import serve

    configure(run.config.logging)
    log = structlog.get_logger("specserve.cli")
    for warning in config_warnings(run.config):
        log.warning("config.warning", rule=warning.rule, key=warning.key, text=warning.text)
    return serve(run.config, overrides=overrides, run_directory=run.run_directory)


def _describe(args: argparse.Namespace, overrides: list[str]) -> int:
    """Let Hydra print the configuration, its help or its completion."""
    import hydra  # heavy

    from specserve.config.compose import CONFIG_NAME, config_directory, search_path_override

    flags = [
        *(["--cfg", args.cfg] if args.cfg else []),
        *(["--package", args.package] if args.package else []),
        *(["--info", args.info] if args.info else []),
        *(["--resolve"] if args.resolve else []),
        *(["--help"] if args.help else []),
        *(["--hydra-help"] if args.hydra_help else []),
        *(["--shell-completion"] if args.shell_completion else []),
    ]
    if args.shell_completion and "COMP_LINE" in os.environ:
        line = os.environ["COMP_LINE"]
        print(*commands_for(line, (*COMMANDS, *OWN_PARSERS)))
        os.environ["COMP_LINE"] = for_hydra(line)
    # Hydra reads sys.argv itself. Flags go first, so that none takes an override for its argument.
    sys.argv[1:] = [*flags, *search_path_override(overrides, args.config_dir), *overrides]
    describe = hydra.main(
        version_base="1.3", config_path=str(config_directory()), config_name=CONFIG_NAME
    )(_no_task)
    try:
        describe()
    except SystemExit as end:
        # Hydra has printed why; with these flags only the configuration can be wrong.
        return ConfigError.exit_code if end.code else 0
    return 0


def _no_task(_: object) -> None:
    """Hydra runs no task when it describes."""


def _command(words: Sequence[str]) -> tuple[str | None, list[str]]:
    """The command, None for the run itself, and the overrides."""
    if not words or "=" in words[0] or words[0].startswith(("+", "~")):
        return None, list(words)
    if words[0] in COMMANDS:
        return words[0], list(words[1:])
    raise ConfigError(
        [
            Problem(
                rule=RuleId.UNKNOWN_COMMAND,
                key="COMMAND",
                value=words[0],
                expected=f"one of {', '.join((*COMMANDS, *OWN_PARSERS))} at the beginning, or none "
                "to serve",
                fix=_meant(words[0]),
            )
        ]
    )


def _meant(word: str) -> str:
    near = get_close_matches(word, (*COMMANDS, *OWN_PARSERS), n=1)
    if near:
        return f"use `specserve {near[0]}`"
    return f"see `specserve --help`, or write +experiment={word} if it is an experiment"


def _refuse_what_is_not_there(args: argparse.Namespace, command: str | None) -> None:
    problems = []
    if args.multirun:
        problems.append(
            Problem(
                rule=RuleId.MULTIRUN,
                key="--multirun",
                value=True,
                expected="a single run: measuring several comes in a later version",
                fix="leave out --multirun and give one value to each key",
            )
        )
    for flag, (value, commands) in _OWN_FLAGS.items():
        if getattr(args, flag) and command not in commands:
            problems.append(
                Problem(
                    rule=RuleId.FLAG_OF_ANOTHER_COMMAND,
                    key=f"--{flag}",
                    value=str(getattr(args, flag)),
                    expected=f"the command {' or '.join(commands)} before it",
                    fix=f"use `specserve {commands[0]} --{flag} {value}`",
                )
            )
    if args.resolve or args.package:
        problems.append(
            Problem(
                rule=RuleId.FLAG_WITHOUT_CFG,
                key="--resolve" if args.resolve else "--package",
                value=args.resolve or args.package,
                expected="--cfg beside it",
                fix="use `specserve --cfg job --resolve`",
            )
        )
    if problems:
        raise ConfigError(problems)


def _parse(argv: Sequence[str]) -> argparse.Namespace:
    parser = FlagParser("specserve")
    parser.add_argument("words", nargs="*")
    parser.add_argument("--facts", type=Path)
    parser.add_argument("--to")
    parser.add_argument("--output", type=Path)
    parser.add_argument("--drop", action="append", default=[])
    add_config_dir(parser)
    parser.add_argument("--version", action="store_true")
    parser.add_argument("--multirun", "-m", action="store_true")
    parser.add_argument("--resolve", action="store_true")
    parser.add_argument("--package", "-p")
    hydra = parser.add_mutually_exclusive_group()
    hydra.add_argument("--cfg", "-c", choices=["job", "hydra", "all"])
    info = ["all", "config", "defaults", "defaults-tree", "plugins", "searchpath"]
    hydra.add_argument("--info", "-i", nargs="?", const="all", choices=info)
    hydra.add_argument("--help", "-h", action="store_true")
    hydra.add_argument("--hydra-help", action="store_true")
    hydra.add_argument("--shell-completion", "-sc", action="store_true")
    return parser.parse_intermixed_args(argv)
