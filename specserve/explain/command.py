"""`specserve explain`: its arguments, and what it prints."""

import json
from collections.abc import Sequence
from pathlib import Path

from specserve.explain.explanation import explain_run
from specserve.explain.text import document, report
from specserve.flags import FlagParser, add_config_dir

_USAGE = """
  specserve explain [KEY …] [FLAGS] [OVERRIDES]"""
_ABOUT = """\
Where does each value of this run come from, and what becomes of it? For every key: the resolved
value, the file and line or the override that set it, what that overrode, which option of the group
was chosen by whom, what the plan decided where the value was left open, with the reason, and the
engine's argument or the build phase that gets it. Starts nothing.

for example

  specserve explain +experiment=topk1_v2
  specserve explain speculation.num_steps policy +experiment=topk1_v2 policy.disable_above=16
  specserve explain engine --json +experiment=kimi_k25_int4_topk1_v2 --facts h200.json"""
_EXIT_CODES = """\
Exit codes: 0 done, also for a run that is refused, which is said first; 2 the run does not compose,
or has no such key."""


def explain_keys(argv: Sequence[str]) -> str:
    """Do what the arguments say; the text for stdout. Raises ConfigError."""
    parser = _parser()
    args = parser.parse_intermixed_args(argv)
    if args.help:
        return parser.format_help()
    keys = [word for word in args.words if _is_key(word)]
    overrides = [word for word in args.words if not _is_key(word)]
    run = explain_run(keys, overrides, args.config_dir, args.facts)
    if args.json:
        return json.dumps(document(run), indent=1, ensure_ascii=False, default=repr)
    return report(run)


def _is_key(word: str) -> bool:
    return "=" not in word and not word.startswith(("~", "+"))


def _parser() -> FlagParser:
    parser = FlagParser("specserve explain", usage=_USAGE, about=_ABOUT)
    parser.epilog = _EXIT_CODES
    parser.add_argument(
        "words",
        nargs="*",
        metavar="KEY, OVERRIDES",
        help="keys or sections, dotted; without any, all of them. Overrides as for a run",
    )
    flags = parser.add_argument_group("flags")
    flags.add_argument(
        "--facts", type=Path, metavar="FILE", help="facts.json of a run on another machine"
    )
    flags.add_argument("--json", action="store_true", help="as JSON")
    add_config_dir(flags)
    flags.add_argument("--help", "-h", action="store_true", help="this text")
    return parser
