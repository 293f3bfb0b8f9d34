"""A review as one comment: verdict first, then what counts most, never longer than GitHub takes."""

from collections.abc import Iterator, Sequence

from specserve import __version__
from specserve.review.cells import depth_cell, growth_cell, short
from specserve.review.difference import Difference
from specserve.review.markdown import code, markdown_lines
from specserve.review.sections import Listing, sections
from specserve.review.verdict import Review, Reviewed, Status

MARKER = "<!-- specserve-review -->"  # by which the comment is found again
LONGEST = 65_536
_ROOM_FOR_LAST_WORDS = 400
_MOST_NOTES = 20
_ROOM_FOR_ROWS = 24_000

_NAMES: dict[Status, tuple[str, str]] = {
    "newly broken": ("is newly broken", "are newly broken"),
    "danger": ("changes with a danger", "change with a danger"),
    "changed": ("changes", "change"),
    "added": ("is new", "are new"),
    "no longer broken": ("is no longer broken", "are no longer broken"),
    "removed": ("is removed", "are removed"),
    "refused": ("cannot work on either side", "cannot work on either side"),
    "unchanged": ("stays as it is", "stay as they are"),
}
_MARKS: dict[Status, str] = {"newly broken": "❌ ", "danger": "⚠️ "}


def comment(review: Review) -> str:
    """Markdown that ends with a line break. What did not fit is named, and how much of it."""
    head = "\n".join(_head(review))
    foot = "\n".join(_foot(review))
    room = LONGEST - len(head) - len(foot) - _ROOM_FOR_LAST_WORDS
    parts: list[str] = []
    left_out: list[str] = []
    for reviewed in review.experiments:
        part = "\n".join(_details(reviewed))
        if not part:
            continue
        if len(part) + 1 > room:
            left_out.append(reviewed.name)
            continue
        parts.append(part)
        room -= len(part) + 1
    return "\n".join([head, *parts, *_last_words(left_out), foot, ""])


def verdict(review: Review) -> str:
    """One sentence."""
    total = len(review.experiments)
    if not total:
        return "No experiment lies in the repository on either side."
    counts = {s: n for s, n in review.counts.items() if s != "unchanged"}
    if not counts:
        return f"None of {_counted(total)} changes."
    parts = [f"{n} {_NAMES[status][n > 1]}" for status, n in counts.items()]
    return f"Of {_counted(total)}, {', '.join(parts)}."


def _head(review: Review) -> Iterator[str]:
    yield MARKER
    yield "### specserve: the configuration change by its effect"
    yield ""
    yield f"**{verdict(review)}**"
    yield ""
    yield f"base {code(short(review.base))} → head {code(short(review.head))}"
    shown = [one for one in review.experiments if one.status != "unchanged"]
    if shown:
        yield ""
        yield "| experiment | verdict | depth | memory needed | dangers and broken rules |"
        yield "| --- | --- | --- | --- | --- |"
        yield from _rows(shown)
    yield from _note_lines(review.notes)


def _rows(shown: Sequence[Reviewed]) -> Iterator[str]:
    room = _ROOM_FOR_ROWS
    for number, reviewed in enumerate(shown):
        row = _row(reviewed)
        room -= len(row)
        if room < 0:
            yield ""
            yield f"… and {len(shown) - number:,} more."
            return
        yield row


def _row(reviewed: Reviewed) -> str:
    difference = reviewed.difference
    ids = sorted({*(p.rule for p in difference.broken), *(d.rule for d in difference.dangers)})
    cells = [
        code(short(reviewed.name)),
        f"{_MARKS.get(reviewed.status, '')}{reviewed.status}",
        code(_depth_summary(difference)),
        code(_memory_summary(difference)),
        ", ".join(ids),
    ]
    return f"| {' | '.join(cells)} |"


def _depth_summary(difference: Difference) -> str:
    """The first load at which the depth is another one."""
    before, after = difference.before.depths, difference.after.depths
    changed = [row for row in difference.depths if row.before != row.after]
    if not changed:
        return "as before" if before and after else ""
    row = changed[0]
    more = f", and {len(changed) - 1} more" if len(changed) > 1 else ""
    return f"at {row}: {depth_cell(row.before, before)} -> {depth_cell(row.after, after)}{more}"


def _memory_summary(difference: Difference) -> str:
    needed = [change for change in difference.memory if change.name == "needed"]
    return growth_cell(needed[0]) if needed else ""


def _note_lines(notes: Sequence[str]) -> Iterator[str]:
    if notes:
        yield ""
        yield from (f"- {code(short(note))}" for note in notes[:_MOST_NOTES])
    if len(notes) > _MOST_NOTES:
        yield f"- … and {len(notes) - _MOST_NOTES} more"


def _details(reviewed: Reviewed) -> Iterator[str]:
    """Nothing for an experiment that stays as it is, or is gone."""
    if reviewed.status in ("unchanged", "removed"):
        return
    difference = reviewed.difference
    found = list(sections(difference, reviewed.measured))
    if reviewed.status == "refused":
        problems = tuple(short(str(problem)) for problem in difference.after.problems)
        found = [Listing(title="refused before and after", items=problems)]
    yield ""
    yield "<details>"
    yield f"<summary>{_MARKS.get(reviewed.status, '')}{_summary(reviewed)}</summary>"
    yield from markdown_lines(found)
    yield ""
    yield "</details>"


def _summary(reviewed: Reviewed) -> str:
    """In HTML, where Markdown does not reach."""
    name = short(reviewed.name)
    for character, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;"), ("@", "&#64;")):
        name = name.replace(character, entity)
    return f"{name}: {reviewed.status}"


def _last_words(left_out: Sequence[str]) -> Iterator[str]:
    if not left_out:
        return
    names = ", ".join(code(short(name)[:40]) for name in left_out[:4])
    more = f" and {len(left_out) - 4} more" if len(left_out) > 4 else ""
    yield ""
    yield (
        f"**Left out, for a comment has {LONGEST:,} characters at most:** the details of {names}"
        f"{more}. `specserve diff` shows each of them."
    )


def _foot(review: Review) -> Iterator[str]:
    yield ""
    yield (
        f"<sub>composed and planned by specserve {__version__} for {code(review.machine)}; "
        "no GPU was used, and the environment was not read</sub>"
    )


def _counted(count: int) -> str:
    return f"{count} experiment" if count == 1 else f"{count} experiments"
