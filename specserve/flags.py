"""Flags of a command: read by argparse, refused as any other wrong configuration."""

import argparse
from pathlib import Path
from typing import NoReturn

from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId


class _Help(argparse.RawDescriptionHelpFormatter):
    """As wide as the texts around it, whatever the terminal."""

    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=24, width=100)


class FlagParser(argparse.ArgumentParser):
    """Knows no abbreviations. `--help` is a flag like others: its reader prints `format_help`."""

    def __init__(self, prog: str, *, usage: str | None = None, about: str | None = None) -> None:
        super().__init__(
            prog=prog,
            usage=usage,
            description=about,
            add_help=False,
            allow_abbrev=False,
            formatter_class=_Help,
        )

    def error(self, message: str) -> NoReturn:
        """Raises ConfigError instead of ending the process."""
        expected, fix = f"flags of {self.prog}", f"see `{self.prog} --help`"
        problem = Problem(
            rule=RuleId.WRONG_FLAG, key="command line", value=message, expected=expected, fix=fix
        )
        raise ConfigError([problem])


def add_config_dir(flags: argparse._ActionsContainer) -> None:
    """The user's own configs, as every command takes them."""
    flags.add_argument(
        "--config-dir",
        "-cd",
        type=Path,
        action="append",
        default=[],
        metavar="DIR",
        help="your own configs",
    )
