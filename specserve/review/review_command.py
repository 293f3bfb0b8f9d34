"""`specserve review`: its arguments, and the comment that it prints."""

from argparse import Namespace
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from specserve.check.machine import PlanningMachine
from specserve.errors import ConfigError, Problem
from specserve.flags import FlagParser, add_config_dir
from specserve.review.comment import comment
from specserve.review.folders import ConfigFolders, absent_folder, find_folders
from specserve.review.git import Repository, find_repository
from specserve.review.revision import Revision, at_commit, in_working_tree
from specserve.review.verdict import Review, review
from specserve.rule_ids import RuleId

_USAGE = """
  specserve review --base REV [--head REV] [FLAGS] [OVERRIDES]"""
_ABOUT = """\
What does a change of the configuration do? Composes every experiment at both revisions and prints
one Markdown comment, verdict first: which experiments change, their keys, the depth by load, the
engine's arguments, the memory, and what is newly broken or dangerous. Touches no checkout: files
are read from git into a temporary folder. The environment is not read, so that a comment cannot
show a secret: ${oc.env:NAME} stays $NAME.

for example

  specserve review --base main
  specserve review --base main --config-dir serving/conf --facts h200.json --fail-on danger

--base is compared as in a pull request: from where the head branched off it."""
_EXIT_CODES = """\
Exit codes: 0 done, whatever was found; 2 a flag is wrong or a revision is not there, or what
--fail-on names was found (the comment is printed all the same)."""


@dataclass(frozen=True, slots=True)
class ReviewAnswer:
    """The comment, and whether --fail-on names something that was found."""

    text: str
    failed: bool


def review_change(argv: Sequence[str]) -> ReviewAnswer:
    """Do what the arguments say. Raises ConfigError."""
    parser = _parser()
    args = parser.parse_intermixed_args(argv)
    if args.help:
        return ReviewAnswer(parser.format_help(), failed=False)
    if args.base is None:
        raise ConfigError([_no_base()])
    repository = find_repository(Path.cwd())
    folders = find_folders(repository, args.config_dir)
    machine = PlanningMachine(args.facts)
    with TemporaryDirectory(prefix="specserve-review-") as temporary:
        base, head = _sides(args, folders, Path(temporary))
        _refuse_absent(folders, base, head)
        found = review(base, head, args.overrides, machine, args.runs)
    text = comment(found).replace(f"{repository.top}/", "")
    return ReviewAnswer(text, failed=_failed(found, args.fail_on))


def _sides(args: Namespace, folders: ConfigFolders, temporary: Path) -> tuple[Revision, Revision]:
    repository = folders.repository
    base = known_commit(repository, args.base, "--base")
    head = known_commit(repository, args.head or "HEAD", "--head")
    start = repository.merge_base(base, head)
    label = f"{args.base} ({base[:10]})"
    if start is not None and start != base:
        label = f"{args.base}, branched off at {start[:10]}"
    before = at_commit(start or base, label, folders, temporary / "base")
    if args.head is not None:
        after = at_commit(head, f"{args.head} ({head[:10]})", folders, temporary / "head")
        return before, after
    changes = " with uncommitted changes" if repository.has_changes(folders.inside) else ""
    label = f"working tree of {head[:10]}{changes}"
    return before, in_working_tree(label, folders, temporary / "head")


def _refuse_absent(folders: ConfigFolders, base: Revision, head: Revision) -> None:
    """A folder may be new, or gone; on neither side it is a wrong name."""
    roots = [side.snapshot.root for side in (base, head)]
    absent = [own for own in folders.own if not any((root / own).is_dir() for root in roots)]
    if absent:
        raise ConfigError([absent_folder(str(folder)) for folder in absent])


def known_commit(repository: Repository, revision: str, key: str) -> str:
    """The hash of `revision`. Raises ConfigError if there is no such commit."""
    commit = repository.commit(revision)
    if commit is None:
        raise ConfigError(
            [
                Problem(
                    rule=RuleId.WRONG_ARGUMENT,
                    key=key,
                    value=revision,
                    expected="a revision that is in this repository",
                    fix="correct the name, or fetch it: in CI check out with the whole history",
                )
            ]
        )
    return commit


def _failed(found: Review, fail_on: str | None) -> bool:
    if fail_on is None:
        return False
    return found.is_broken or (fail_on == "danger" and found.is_dangerous)


def _no_base() -> Problem:
    return Problem(
        rule=RuleId.WRONG_ARGUMENT,
        key="--base",
        value=None,
        expected="the revision to compare with",
        fix="use `specserve review --base main`",
    )


def _parser() -> FlagParser:
    parser = FlagParser("specserve review", usage=_USAGE, about=_ABOUT)
    parser.epilog = _EXIT_CODES
    parser.add_argument(
        "overrides", nargs="*", metavar="OVERRIDES", help="for every experiment, on both sides"
    )
    sides = parser.add_argument_group("the sides")
    sides.add_argument("--base", metavar="REV", help="branch, tag or commit to compare with")
    sides.add_argument("--head", metavar="REV", help="what is compared (the working tree)")
    add_config_dir(sides)
    flags = parser.add_argument_group("flags")
    flags.add_argument(
        "--facts", type=Path, metavar="FILE", help="facts.json of a run on the machine to plan for"
    )
    flags.add_argument(
        "--runs", type=Path, default=Path("runs"), metavar="DIR", help="measured runs (runs)"
    )
    flags.add_argument(
        "--fail-on",
        choices=("broken", "danger"),
        help="end with 2 if a rule is newly broken, or also if there is a new danger",
    )
    flags.add_argument("--help", "-h", action="store_true", help="this text")
    return parser
