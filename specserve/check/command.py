"""`specserve check`: its arguments, and what it prints."""

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from specserve.check.catalogue import EXPERIMENT, Catalogue, Option, find_catalogue
from specserve.check.document import refusal_document, report_document, survey_document
from specserve.check.explain import explain_rule, list_rules
from specserve.check.place import place_of
from specserve.check.run import Report, check_run
from specserve.check.sarif import sarif_log
from specserve.check.survey import Finding, Survey, survey
from specserve.check.text import survey_text
from specserve.config.compose import CONFIG_NAME
from specserve.errors import ConfigError, Doubt, Problem
from specserve.flags import FlagParser, add_config_dir

_USAGE = """
  specserve check [FLAGS] [OVERRIDES]          one run
  specserve check --all [FLAGS] [OVERRIDES]    every experiment and option, shipped and your own
  specserve check --explain [ID]               what a rule is about; without ID the list"""
_ABOUT = """\
Everything that can be known before a GPU is touched: composition, values, rules across sections,
checkpoint headers, the machine, memory. Starts nothing and loads no weights.

for example

  specserve check +experiment=topk1_v2 speculation.num_steps=4
  specserve check +experiment=kimi_k25_int4_topk1_v2 --facts that_machine.json
  specserve check --all --config-dir configs --format sarif > specserve.sarif"""
_EXIT_CODES = """\
Without --facts a run is checked against this machine. With --all, a run that is valid but for
another machine (8 GPUs on a laptop) is said not to be plannable here, and does not fail.

Exit codes: 0 sound, 2 something is wrong (the list goes to stderr, with --all, --format json and
--format sarif to stdout)."""


@dataclass(frozen=True, slots=True)
class Answer:
    """What goes to stdout, and whether all that was checked is sound."""

    text: str
    sound: bool


def check(argv: Sequence[str]) -> Answer:
    """Do what the arguments say. Raises ConfigError for what is wrong, in words for stderr."""
    parser = _parser()
    args = parser.parse_intermixed_args(argv)
    if args.help:
        return Answer(parser.format_help(), sound=True)
    if args.explain is not None:
        return Answer(explain_rule(args.explain) if args.explain else list_rules(), sound=True)
    if args.all:
        return _all(survey(args.words, args.config_dir, args.facts), args.format)
    try:
        report = check_run(args.words, args.config_dir, args.facts)
    except ConfigError as error:
        if args.format == "text":
            raise
        return _refusal(error.problems, args.words, args.config_dir, args.format)
    return Answer(_report(report, args.words, args.config_dir, args.format), sound=True)


def _all(found: Survey, form: str) -> Answer:
    match form:
        case "json":
            text = _json(survey_document(found))
        case "sarif":
            outcomes = (*found.experiments, *found.options)
            findings = [finding for outcome in outcomes for finding in outcome.findings]
            text = _json(sarif_log([*findings, *found.files]))
        case _:
            text = survey_text(found)
    return Answer(text, sound=not found.failed)


def _report(report: Report, words: Sequence[str], config_dirs: Sequence[Path], form: str) -> str:
    match form:
        case "json":
            return _json(report_document(report))
        case "sarif":
            return _json(sarif_log(_placed(report.warnings, words, config_dirs)))
        case _:
            return str(report)


def _refusal(
    problems: Sequence[Problem], words: Sequence[str], config_dirs: Sequence[Path], form: str
) -> Answer:
    if form == "json":
        return Answer(_json(refusal_document(problems)), sound=False)
    return Answer(_json(sarif_log(_placed(problems, words, config_dirs))), sound=False)


def _placed(
    told: Iterable[Problem | Doubt], words: Sequence[str], config_dirs: Sequence[Path]
) -> list[Finding]:
    """Each with the line of the experiment, or of the primary config, that it is about."""
    catalogue = find_catalogue([folder for folder in config_dirs if folder.is_dir()])
    subject = _subject(words, catalogue)
    return [Finding(one, place_of(one.key, subject, catalogue)) for one in told]


def _subject(words: Sequence[str], catalogue: Catalogue) -> Option:
    primary = Option(EXPERIMENT, CONFIG_NAME, catalogue.folders[0] / f"{CONFIG_NAME}.yaml")
    names = [word.partition("=")[2] for word in words if word.startswith(f"+{EXPERIMENT}=")]
    chosen = (o for o in catalogue.options if o.is_experiment and o.name in names)
    return next(chosen, primary)


def _json(document: dict[str, Any]) -> str:
    return json.dumps(document, indent=2, ensure_ascii=False, default=str)


def _parser() -> FlagParser:
    parser = FlagParser("specserve check", usage=_USAGE, about=_ABOUT)
    parser.epilog = _EXIT_CODES
    parser.add_argument("words", nargs="*", metavar="OVERRIDES", help="as for a run")
    flags = parser.add_argument_group("flags")
    flags.add_argument(
        "--all", action="store_true", help="every experiment, and every option of every group"
    )
    flags.add_argument(
        "--facts", type=Path, metavar="FILE", help="facts.json of a run on another machine"
    )
    flags.add_argument(
        "--format", choices=["text", "json", "sarif"], default="text", help="text, json or sarif"
    )
    flags.add_argument(
        "--explain", nargs="?", const="", metavar="ID", help="what the rule ID is about"
    )
    add_config_dir(flags)
    flags.add_argument("--help", "-h", action="store_true", help="this text")
    return parser
