from specserve.errors import Problem
from specserve.plan.notes import Notes
from specserve.plan.values import Adjustment
from specserve.rule_ids import RuleId


def test_what_is_noted_is_kept_in_order() -> None:
    notes = Notes()
    problems = [
        Problem(rule=RuleId.WRONG_VALUE, key=key, value=1, expected="2", fix=f"set {key}=2")
        for key in ("b", "a")
    ]

    notes.adjust("z", "auto", 1, "first")
    notes.adjust("y", "auto", 2, "second")
    notes.refuse(problems)
    notes.refuse([])

    assert [
        Adjustment(key="z", asked="auto", effective=1, reason="first"),
        Adjustment(key="y", asked="auto", effective=2, reason="second"),
    ] == notes.adjustments
    assert problems == notes.problems
    assert [] == notes.doubts
