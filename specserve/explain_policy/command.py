"""`specserve explain-policy`: its arguments, and what it prints."""

import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from specserve.errors import ConfigError, Problem
from specserve.explain_policy.explanation import explain
from specserve.explain_policy.text import document, report
from specserve.flags import FlagParser, add_config_dir
from specserve.rule_ids import RuleId

_USAGE = """
  specserve explain-policy bs=N [acceptance=P] [FLAGS] [OVERRIDES]"""
_ABOUT = """\
What does the policy of this run do while N requests decode, and why? Tells the rule in the
policy's own words, the depth, the tokens that are verified, the CUDA graph that the batch is
padded to, and, with a calibration, the expected tokens/s of every depth. Where it matters whether
the load comes from below or from above (hysteresis), it tells both. Starts nothing.

for example

  specserve explain-policy bs=40 acceptance=0.6 +experiment=topk1_v2
  specserve explain-policy bs=7 +experiment=topk1_v2 --calibration h200.json
  specserve explain-policy bs=40 acceptance=0.7,0.45,0.3 +experiment=topk1_v2 \\
      policy=cost_model policy.calibration=h200.json --facts h200_machine.json

words

  bs=N              running decodes: requests in decode in this step
  acceptance=P      chance that a draft token is accepted, given that the one before it was; or
                    P1,P2,…: the chance of each position. Without it, the calibration's"""
_EXIT_CODES = "Exit codes: 0 done, 2 an argument, a file or the configuration is wrong."


@dataclass(frozen=True, slots=True)
class _Words:
    """The words of this command, and the overrides among them."""

    bs: str | None
    acceptance: str | None
    overrides: tuple[str, ...]


def explain_policy(argv: Sequence[str]) -> str:
    """Do what the arguments say; the text for stdout. Raises ConfigError."""
    parser = _parser()
    args = parser.parse_intermixed_args(argv)
    if args.help:
        return parser.format_help()
    words = _split(args.words)
    explanation = explain(
        words.overrides,
        args.config_dir,
        running_decodes=_running_decodes(words.bs),
        acceptance=words.acceptance,
        calibration_file=args.calibration,
        facts_file=args.facts,
    )
    if args.json:
        return json.dumps(document(explanation), indent=1)
    return report(explanation)


def _parser() -> FlagParser:
    parser = FlagParser("specserve explain-policy", usage=_USAGE, about=_ABOUT)
    parser.epilog = _EXIT_CODES
    run = parser.add_argument_group("the run")
    run.add_argument("words", nargs="*", metavar="OVERRIDES", help="as for a run")
    flags = parser.add_argument_group("flags")
    flags.add_argument(
        "--calibration",
        type=Path,
        metavar="FILE",
        help="measured round times and acceptance (the policy's own, if it has one)",
    )
    flags.add_argument(
        "--facts", type=Path, metavar="FILE", help="facts.json of a run on another machine"
    )
    flags.add_argument("--json", action="store_true", help="as JSON")
    add_config_dir(flags)
    flags.add_argument("--help", "-h", action="store_true", help="this text")
    return parser


def _split(words: Sequence[str]) -> _Words:
    own: dict[str, str] = {}
    overrides = []
    for word in words:
        key, _, value = word.partition("=")
        if key in ("bs", "acceptance"):
            own[key] = value
        else:
            overrides.append(word)
    return _Words(own.get("bs"), own.get("acceptance"), tuple(overrides))


def _running_decodes(text: str | None) -> int:
    if text is not None and text.isdecimal() and int(text) > 0:
        return int(text)
    expected = "the number of running decodes, an integer from 1 on"
    raise ConfigError(
        [
            Problem(
                rule=RuleId.WRONG_ARGUMENT, key="bs", value=text, expected=expected, fix="set bs=8"
            )
        ]
    )
