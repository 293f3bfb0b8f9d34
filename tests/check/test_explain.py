import pytest

from specserve.check.explain import explain_rule, list_rules
from specserve.errors import ConfigError
from specserve.rule_ids import RuleId
from specserve.rulebook import RULEBOOK
from specserve.sglang_engine.table import ROWS


@pytest.mark.parametrize("asked", ["SPEC301", "spec301", "301"])
def test_a_rule_is_explained_with_every_part(asked: str) -> None:
    rule = RULEBOOK[RuleId.CHAIN_LENGTH]
    told = " ".join(explain_rule(asked).split())

    assert told.startswith(f"SPEC301 {rule.title} severity error")
    assert all(part in told for part in (rule.what, rule.why, rule.fix, rule.example))


def test_every_rule_can_be_explained_on_a_hundred_columns() -> None:
    texts = [explain_rule(rule) for rule in RuleId]

    assert all(len(line) <= 100 for text in texts for line in text.splitlines())


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("SPEC31", "SPEC301"), ("SPC301", "SPEC301"), ("chain_lenght", "SPEC301")],
)
def test_a_typo_gets_the_nearest_id(asked: str, meant: str) -> None:
    with pytest.raises(ConfigError, match=f"use --explain {meant}"):
        explain_rule(asked)


def test_what_is_near_to_nothing_gets_the_list() -> None:
    with pytest.raises(ConfigError, match="without an id for the list"):
        explain_rule("????")


def test_the_list_has_every_rule_on_a_line() -> None:
    assert sorted(RuleId) == [line.split()[0] for line in list_rules().splitlines()]


def test_a_rule_that_depends_on_the_release_tells_for_which_it_holds() -> None:
    told = " ".join(explain_rule(RuleId.TREE_WITHOUT_SUPPORT).split())

    assert "SGLang 0.5.17 to" in told
    assert ROWS["TREE_OVER_PAGES"].meaning in told


def test_the_rows_that_rules_name_exist() -> None:
    named = {name for rule in RULEBOOK.values() for name in rule.versions}

    assert named
    assert named <= set(ROWS)
