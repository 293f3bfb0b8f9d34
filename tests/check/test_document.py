import json
from pathlib import Path

from specserve.check.document import refusal_document, survey_document
from specserve.check.survey import survey
from specserve.errors import Problem
from specserve.rule_ids import RuleId
from tests.check.conftest import write


def test_an_outcome_has_its_status_and_where_each_finding_is(configs: Path) -> None:
    write(configs, {"experiment/bad.yaml": "# @package _global_\nserver:\n  prot: 1\n"})
    document = json.loads(json.dumps(survey_document(survey([], [configs], None))))
    outcomes = {outcome["words"]: outcome for outcome in document["outcomes"]}
    bad = str(configs / "experiment/bad.yaml")

    assert "failed" == document["verdict"]
    assert len(outcomes) == sum(document["checked"].values())
    assert ("ok", "failed") == (
        outcomes["policy=mine"]["status"],
        outcomes["+experiment=bad"]["status"],
    )
    assert [
        {
            "rule": "SPEC201",
            "severity": "error",
            "key": "server.prot",
            "value": 1,
            "expected": "server.port, for there is no server.prot",
            "fix": "set server.port=1 in its place",
            "file": bad,
            "line": 3,
        }
    ] == outcomes["+experiment=bad"]["findings"]


def test_a_refusal_has_every_problem() -> None:
    problem = Problem(rule=RuleId.CHAIN_LENGTH, key="a", value=(1,), expected="b", fix="c")
    document = refusal_document([problem])

    assert "failed" == document["verdict"]
    assert ["SPEC301"] == [told["rule"] for told in document["problems"]]
