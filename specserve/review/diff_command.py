"""`specserve diff`: its arguments, and what it prints."""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from specserve.check.machine import PlanningMachine
from specserve.errors import ConfigError, Problem
from specserve.flags import FlagParser, add_config_dir
from specserve.review.difference import Difference, compare
from specserve.review.document import document
from specserve.review.measured import Measured, read_measured
from specserve.review.runs import last_measured
from specserve.review.sections import sections
from specserve.review.subject import Context, Subject, read_subject
from specserve.review.text import text_lines
from specserve.rule_ids import RuleId

_USAGE = """
  specserve diff A B [FLAGS] [OVERRIDES]"""
_ABOUT = """\
What sets two configurations apart? Tells the keys with their values, the depth by load (rising and
falling, as the policies themselves decide), the engine's arguments, the memory, what the plan
decides otherwise than asked, rules that only one side breaks, and what was measured last.

A and B are each one of

  topk1_v2                 an experiment
  "topk1_v2 policy=off"    an experiment with overrides, in quotes; or overrides alone
  main:topk1_v2            an experiment at a branch, tag or commit (main: alone: the defaults)
  runs/2026-12-01_…        the folder of a run: by the plan that it ran with
  some/config.yaml         a whole resolved configuration

for example

  specserve diff topk1_v2 "topk1_v2 policy.disable_above=16"
  specserve diff main:topk1_v2 topk1_v2
  specserve diff baseline topk1_v2 model=llama31_8b --facts h200.json

Overrides after A and B are for both."""
_EXIT_CODES = "Exit codes: 0 done, whatever differs; 2 a side does not compose or is not there."


def diff_subjects(argv: Sequence[str]) -> str:
    """Do what the arguments say; the text for stdout. Raises ConfigError."""
    parser = _parser()
    args = parser.parse_intermixed_args(argv)
    if args.help:
        return parser.format_help()
    if len(args.words) < 2:
        raise ConfigError([_too_few(args.words)])
    context = Context(
        overrides=tuple(args.words[2:]),
        config_dirs=tuple(args.config_dir),
        machine=PlanningMachine(args.facts),
    )
    before, after = (read_subject(typed, context) for typed in args.words[:2])
    difference = compare(before.side, after.side)
    if args.json:
        return json.dumps(document(difference), indent=1, ensure_ascii=False, default=repr)
    measured = (_measured(before, args.runs), _measured(after, args.runs))
    return "\n".join(_report(before, after, difference, measured))


def _report(
    before: Subject,
    after: Subject,
    difference: Difference,
    measured: tuple[Measured, Measured],
) -> Iterator[str]:
    yield _verdict(difference)
    yield f"  before  {before.name} ({before.kind})"
    yield f"  after   {after.name} ({after.kind})"
    yield from text_lines(list(sections(difference, measured)))


def _verdict(difference: Difference) -> str:
    if difference.is_empty:
        return "no difference"
    parts = {
        "newly broken rule": len(difference.broken),
        "new danger": len(difference.dangers),
        "changed key": len(difference.keys),
        "changed engine argument": len(difference.arguments),
    }
    told = [f"{n} {name}{'s' if n > 1 else ''}" for name, n in parts.items() if n]
    return ", ".join([*told, _depth(difference)])


def _depth(difference: Difference) -> str:
    if difference.before.depths is None or difference.after.depths is None:
        return "the depth by load is known of one side at most"
    return "the depth by load changes" if difference.depths else "the depth by load stays"


def _measured(subject: Subject, runs: Path) -> Measured:
    if subject.kind == "a run folder":
        folder = Path(subject.name)
        return read_measured(folder if folder.is_dir() else folder.parent)
    return last_measured(runs, subject.side.config)


def _too_few(words: Sequence[str]) -> Problem:
    return Problem(
        rule=RuleId.WRONG_ARGUMENT,
        key="diff",
        value=" ".join(words) or None,
        expected="two subjects to compare",
        fix="use `specserve diff baseline topk1_v2`",
    )


def _parser() -> FlagParser:
    parser = FlagParser("specserve diff", usage=_USAGE, about=_ABOUT)
    parser.epilog = _EXIT_CODES
    parser.add_argument("words", nargs="*", metavar="A B, OVERRIDES", help="see above")
    flags = parser.add_argument_group("flags")
    flags.add_argument(
        "--facts", type=Path, metavar="FILE", help="facts.json of a run on the machine to plan for"
    )
    flags.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="measured runs (runs)"
    )
    flags.add_argument("--json", action="store_true", help="as JSON")
    add_config_dir(flags)
    flags.add_argument("--help", "-h", action="store_true", help="this text")
    return parser
