"""`specserve schema`: the JSON Schemas as files, or that of a whole run on standard output."""

import json
from argparse import Namespace
from collections.abc import Sequence
from pathlib import Path

from specserve.errors import ConfigError, Problem
from specserve.flags import FlagParser
from specserve.rule_ids import RuleId
from specserve.schema.document import run_schema
from specserve.schema.files import write_schema_files
from specserve.schema.reference import reference_page

_USAGE = "specserve schema [--output DIR] [--reference FILE]"
_ABOUT = """\
JSON Schema (draft 2020-12) of the configuration: of a whole run on standard output, or with
--output of every kind of file, laid out as conf/ is. Editors read it from the first line of a file:

    # yaml-language-server: $schema=schema.json
"""


def write_schemas(words: Sequence[str]) -> str:
    """What `specserve schema WORDS` prints. Raises ConfigError for what can't be written."""
    parser = _parser()
    args = parser.parse_args(list(words))
    if args.help:
        return parser.format_help().rstrip()
    written = [*_schemas(args), *_reference(args)]
    if not written:
        return json.dumps(run_schema(), indent=2, ensure_ascii=False)
    return "\n".join(f"wrote {path}" for path in written)


def _schemas(args: Namespace) -> list[Path]:
    if args.output is None:
        return []
    try:
        return list(write_schema_files(args.output))
    except OSError as error:
        raise _unwritable("--output", args.output, error) from error


def _reference(args: Namespace) -> list[Path]:
    if args.reference is None:
        return []
    try:
        args.reference.write_text(reference_page(), encoding="utf-8")
    except OSError as error:
        raise _unwritable("--reference", args.reference, error) from error
    return [args.reference]


def _unwritable(flag: str, path: Path, error: OSError) -> ConfigError:
    return ConfigError(
        [
            Problem(
                rule=RuleId.UNWRITABLE_FILE,
                key=flag,
                value=str(path),
                expected=f"a place that can be written ({error.strerror or error})",
                fix=f"give {flag} another path",
            )
        ]
    )


def _parser() -> FlagParser:
    parser = FlagParser("specserve schema", usage=_USAGE, about=_ABOUT)
    parser.add_argument("--output", type=Path, metavar="DIR", help="write schemas below DIR")
    parser.add_argument(
        "--reference", type=Path, metavar="FILE", help="write the page of all keys (Markdown)"
    )
    parser.add_argument("--help", "-h", action="store_true")
    return parser
