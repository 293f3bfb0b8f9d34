"""The rulebook is whole, and its examples show what they say."""

import ast
import re
import shlex
from pathlib import Path

import pytest

from specserve.cli import main
from specserve.rule_ids import RuleId
from specserve.rulebook import RULEBOOK, Rule

ROOT = Path(__file__).parent.parent.parent
PACKAGE = ROOT / "specserve"
COMMITTED = ROOT / "tests/data/rule_ids.txt"

SHOWN = [rule for rule in RULEBOOK.values() if rule.example.startswith("specserve ")]


def test_every_rule_has_an_entry() -> None:
    assert set(RuleId) == set(RULEBOOK)


@pytest.mark.parametrize("rule", RULEBOOK.values(), ids=lambda rule: rule.id)
def test_an_entry_has_every_part(rule: Rule) -> None:
    sentences = (rule.what, rule.why, rule.fix)

    assert all(text.endswith(".") for text in sentences)
    assert 0 < len(rule.title) <= 80
    assert not rule.title.endswith(".")
    assert "\n" not in rule.title
    assert rule.example


def test_no_two_rules_have_one_title() -> None:
    titles = [rule.title for rule in RULEBOOK.values()]

    assert len(set(titles)) == len(titles)


def test_what_is_refused_is_an_error_and_what_is_doubted_is_not() -> None:
    """From 50 on within a kind are doubts."""
    assert [] == [
        rule.id
        for rule in RULEBOOK.values()
        if (rule.severity == "error") != (int(rule.id[-2:]) < 50)
    ]


def test_an_id_is_never_given_to_another_rule() -> None:
    """A new rule is added to tests/data/rule_ids.txt; one that is gone stays there, as retired."""
    lines = [line.split() for line in COMMITTED.read_text().splitlines()]
    ids = [line[0] for line in lines]
    in_force = {line[0]: line[1] for line in lines if line[2:] != ["retired"]}

    assert len(set(ids)) == len(ids)
    assert in_force == {str(rule): rule.name for rule in RuleId}


def _calls(path: Path) -> list[ast.Call]:
    return [
        node
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and isinstance(node.func, ast.Name)
        and node.func.id in ("Problem", "Doubt")
    ]


def _names_a_rule(call: ast.Call) -> bool:
    """`rule=RuleId.NAME`; or a parameter or field that is called so, whose type mypy checks."""
    for keyword in call.keywords:
        if keyword.arg == "rule":
            value = keyword.value
            if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
                return value.value.id != "RuleId" or value.attr in RuleId.__members__
            return isinstance(value, ast.Name) and value.id == "rule"
    return False


def test_every_problem_names_its_rule() -> None:
    nameless = [
        f"{path.relative_to(ROOT)}:{call.lineno}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for call in _calls(path)
        if not _names_a_rule(call)
    ]

    assert [] == nameless


def test_every_rule_is_raised_somewhere() -> None:
    """An entry that nothing refers to is about a rule that does not exist."""
    elsewhere = [
        path.read_text(encoding="utf-8")
        for path in PACKAGE.rglob("*.py")
        if "rulebook" not in path.parts and path.name != "rule_ids.py"
    ]
    named = {name for text in elsewhere for name in re.findall(r"\bRuleId\.([A-Z0-9_]+)", text)}

    assert {rule.name for rule in RuleId} == named


@pytest.mark.parametrize("rule", SHOWN, ids=[rule.id for rule in SHOWN])
def test_an_example_shows_its_rule(rule: Rule, capsys: pytest.CaptureFixture[str]) -> None:
    """What begins with `specserve` is typed as it stands."""
    main(shlex.split(rule.example)[1:])

    out, err = capsys.readouterr()
    assert f"[{rule.id}]" in out + err
