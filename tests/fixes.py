"""Do what the fix of a problem says, word for word, as a reader in a hurry would."""

import re
import shlex
from collections.abc import Iterable, Sequence

from specserve.errors import Problem

_OVERRIDE = re.compile(r"[+~]*[\w./-]+=")
_PLACEHOLDER = re.compile(r"=[A-Z]{3,}$")


def apply_fixes(overrides: Sequence[str], problems: Iterable[Problem]) -> list[str]:
    """`overrides` after the first remedy of each problem that can be typed as it stands."""
    fixed = list(overrides)
    for problem in problems:
        added = settings_of(problem)
        gone = {*map(_key, added), *_removed(problem, added)}
        fixed = [override for override in fixed if _key(override) not in gone] + added
    return fixed


def settings_of(problem: Problem) -> list[str]:
    """The overrides of the first remedy that has any; one with a placeholder only as the last."""
    # An apostrophe inside a word (the model's) is no quote.
    fix = re.sub(r"(?<=\w)'(?=\w)", "", problem.fix)
    remedies = [
        [word for word in shlex.split(remedy) if _OVERRIDE.match(word)]
        for remedy in re.split(r",? or ", fix)
    ]
    typed = [words for words in remedies if words]
    whole = [words for words in typed if not any(map(_PLACEHOLDER.search, words))]
    return next(iter(whole or typed), [])


def is_mechanical(problem: Problem) -> bool:
    """Whether what to do can be done by typing: an override without a placeholder, or less."""
    settings = settings_of(problem)
    return problem.fix.startswith("remove it") or (
        bool(settings) and not any(map(_PLACEHOLDER.search, settings))
    )


def _removed(problem: Problem, added: Sequence[str]) -> set[str]:
    """The key itself, unless the remedy is to change another one beside it."""
    key = problem.key.lstrip("+~")
    chooses_its_group = any(key.startswith(f"{_key(one)}.") for one in added)
    if chooses_its_group or not added or "in its place" in problem.fix:
        return {key}
    return set()


def _key(override: str) -> str:
    return override.partition("=")[0].lstrip("+~")
