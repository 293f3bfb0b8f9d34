"""The comment of a made-up review: order, length, and what is left out."""

import re

from specserve.errors import Problem
from specserve.review.comment import LONGEST, MARKER, comment, verdict
from specserve.review.difference import compare
from specserve.review.measured import Measured
from specserve.review.side import Side
from specserve.review.verdict import Review, Reviewed, Status
from specserve.rule_ids import RuleId

NO_FIGURES = Measured(source="no run of it was measured")


def _reviewed(name: str, status: Status, problems: int = 0) -> Reviewed:
    told = tuple(
        Problem(rule=RuleId.WRONG_VALUE, key=f"k{n}", value="x" * 90, expected="y", fix="z")
        for n in range(problems)
    )
    difference = compare(Side(), Side(problems=told))
    return Reviewed(
        name=name, status=status, difference=difference, measured=(NO_FIGURES, NO_FIGURES)
    )


def _review(*experiments: Reviewed, notes: tuple[str, ...] = ()) -> Review:
    return Review(base="main", head="topic", machine="a box", experiments=experiments, notes=notes)


def test_the_verdict_counts_in_words() -> None:
    two = [_reviewed(name, "changed") for name in "ab"]

    assert "No experiment lies in the repository on either side." == verdict(_review())
    assert "None of 1 experiment changes." == verdict(_review(_reviewed("a", "unchanged")))
    assert "Of 3 experiments, 1 is newly broken, 2 change." == verdict(
        _review(_reviewed("c", "newly broken"), *two)
    )


def test_what_does_not_fit_is_named_and_the_rest_is_whole() -> None:
    review = _review(
        _reviewed("small", "newly broken", 1),
        *(_reviewed(f"large{n}", "newly broken", 200) for n in range(6)),
        _reviewed("last", "changed", 1),
    )
    text = comment(review)

    assert len(text) <= LONGEST
    assert "the details of `large" in text
    assert text.count("<details>") == text.count("</details>")
    assert "<summary>last: changed</summary>" in text
    assert text.endswith("</sub>\n")


def test_thousands_of_experiments_and_notes_fit() -> None:
    name = "e" * 90
    review = _review(
        *(_reviewed(f"{name}{n}", "changed", 1) for n in range(3000)),
        notes=tuple(f"note {n} {'x' * 500}" for n in range(500)),
    )
    text = comment(review)

    assert len(text) <= LONGEST
    assert re.search(r"\n… and 2,[89]\d\d more\.\n", text)
    assert "- … and 480 more" in text
    assert MARKER == text.splitlines()[0]
