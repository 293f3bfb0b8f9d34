"""What the rulebook says of one rule."""

from dataclasses import dataclass
from typing import Literal

from specserve.rule_ids import RuleId

# error: refused. warning: works, but probably is not meant. danger: works, and can do harm.
Severity = Literal["error", "warning", "danger"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """For a reader who has seen the id and wants to know what it is about.

    `title` states what is wrong in one line. An `example` that begins with `specserve` shows the
    rule as it stands, anywhere; another one describes what does. `versions` names the rows of
    SGLang's table (sglang_engine/table.py) that say for which releases the rule holds, and how.
    """

    id: RuleId
    title: str
    severity: Severity = "error"
    what: str
    why: str
    fix: str
    example: str
    versions: tuple[str, ...] = ()
