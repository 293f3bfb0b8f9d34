"""Acceptance as typed on a command line: one chance for every token, or one for each position."""

from specserve.errors import ConfigError, Problem
from specserve.replay.acceptance import by_chance
from specserve.replay.acceptance_columns import by_position
from specserve.replay.cells import WrongCellError, share
from specserve.rule_ids import RuleId


def read_acceptance(key: str, text: str, positions: int) -> tuple[float, ...]:
    """Chances of `positions` draft tokens from 0.7 (each, given the one before) or 0.7,0.45,0.3.

    Brackets around a list are allowed. Raises ConfigError that names `key`.
    """
    entries = [entry.strip() for entry in text.strip("[] ").split(",")]
    try:
        chances = [_number(entry) for entry in entries]
        if len(chances) == 1 and "[" not in text:
            return by_chance(share("acceptance", chances[0]), positions)
        return by_position(chances, positions)
    except WrongCellError as error:
        problem = Problem(
            rule=RuleId.WRONG_ARGUMENT, key=key, value=text, expected=error.expected, fix=error.fix
        )
        raise ConfigError([problem]) from error


def _number(text: str) -> float | str:
    try:
        return float(text)
    except ValueError:
        return text  # to be refused by name
