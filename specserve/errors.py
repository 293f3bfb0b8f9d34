"""Every exception specserve raises on purpose.

SpecserveError
├── ConfigError    the configuration cannot work; exit code 2
├── PhaseError     a build phase failed; names the phase, chains the cause; exit code 3
├── EngineError    a running engine broke its contract; exit code 4
└── RequestError   one request cannot be served; names its field; HTTP 4xx
"""

from collections.abc import Sequence
from dataclasses import dataclass

from specserve.rule_ids import RuleId


class SpecserveError(Exception):
    """Base of everything raised on purpose; `exit_code` is what the process ends with."""

    exit_code = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Problem:
    """One thing wrong with a configuration, phrased for the person who wrote it.

    `key` can be pasted onto the command line; `fix`, applied mechanically, mends the problem.
    """

    rule: RuleId
    key: str
    value: object
    expected: str
    fix: str

    def __str__(self) -> str:
        told = f"{self.key}={self.value!r}: expected {self.expected}. Fix: {self.fix}."
        return f"{told} [{self.rule}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Doubt:
    """What works but probably is not meant; `key` is the setting that could be changed."""

    rule: RuleId
    key: str
    text: str

    def __str__(self) -> str:
        return f"{self.text} [{self.rule}]"


class ConfigError(SpecserveError):
    """The configuration cannot work: all problems at once."""

    exit_code = 2

    def __init__(self, problems: Sequence[Problem]) -> None:
        self.problems = tuple(problems)
        super().__init__("\n".join(str(problem) for problem in self.problems))


class PhaseError(SpecserveError):
    """A build phase failed. `done` names the phases that had finished and were undone."""

    exit_code = 3

    def __init__(self, phase: str, cause: str, done: Sequence[str]) -> None:
        self.phase = phase
        self.cause = cause
        self.done = tuple(done)
        finished = ", ".join(done) or "none"
        super().__init__(f"phase {phase} failed: {cause} (finished before and undone: {finished})")


class EngineError(SpecserveError):
    """A running engine broke its contract or died."""

    exit_code = 4


class RequestError(SpecserveError):
    """One request cannot be served as asked; `param` is the field, as the client spelt it."""

    def __init__(self, message: str, *, param: str | None, status: int = 400) -> None:
        self.param = param
        self.status = status
        super().__init__(message)
