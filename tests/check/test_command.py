import json
from pathlib import Path

import pytest

from specserve.check import check
from specserve.errors import ConfigError
from tests.check.conftest import write

FACTS = Path(__file__).parent.parent / "data/facts/h200.json"
LLAMA = ["+experiment=topk1_v2", "model=llama31_8b", "--facts", str(FACTS)]


def test_one_run_is_reported_as_text_json_and_sarif() -> None:
    text = check(LLAMA)
    document = json.loads(check([*LLAMA, "--format", "json"]).text)
    log = json.loads(check([*LLAMA, "--format", "sarif"]).text)

    assert (True, "OK") == (text.sound, text.text.splitlines()[0])
    assert ("ok", "llama") == (document["verdict"], document["plan"]["target"]["architecture"])
    assert {w["rule"] for w in document["warnings"]} == {
        result["ruleId"] for result in log["runs"][0]["results"]
    }


def test_a_refused_run_is_raised_as_text_and_told_in_the_other_formats() -> None:
    wrong = ["+experiment=topk1_v2", "speculation.num_draft_tokens=3"]
    with pytest.raises(ConfigError, match="SPEC301"):
        check(wrong)
    answer = check([*wrong, "--format", "json"])
    [problem] = json.loads(answer.text)["problems"]
    log = check([*wrong, "--format", "sarif"])
    [result] = json.loads(log.text)["runs"][0]["results"]

    assert (False, False) == (answer.sound, log.sound)
    assert ("SPEC301", "error", 3) == (problem["rule"], problem["severity"], problem["value"])
    assert "eagle3_topk1.yaml" in json.dumps(result["locations"])


def test_everything_is_reported_as_text_json_and_sarif(configs: Path) -> None:
    write(configs, {"experiment/bad.yaml": "# @package _global_\nserver:\n  prot: 1\n"})
    words = ["--all", "--config-dir", str(configs)]
    answers = [check([*words, "--format", form]) for form in ("text", "json", "sarif")]
    document, log = (json.loads(answer.text) for answer in answers[1:])
    failed = [o for o in document["outcomes"] if o["status"] == "failed"]
    errors = [r for r in log["runs"][0]["results"] if r["level"] == "error"]

    assert [False] * 3 == [answer.sound for answer in answers]
    assert ("failed", ["+experiment=bad"]) == (document["verdict"], [o["words"] for o in failed])
    assert ["SPEC201"] == [finding["rule"] for finding in failed[0]["findings"]]
    assert ["SPEC201"] == [result["ruleId"] for result in errors]


def test_a_rule_is_explained_without_a_run() -> None:
    assert check(["--explain", "SPEC301"]).text.startswith("SPEC301  A chain")
    assert check(["--explain"]).text.startswith("SPEC001  ")


def test_help_names_every_form() -> None:
    told = check(["--help"]).text

    assert all(word in told for word in ("--all", "--facts", "--format", "--explain", "sarif"))


@pytest.mark.parametrize("words", [["--format", "xml"], ["--drop", "x"], ["--facts"]])
def test_a_flag_that_is_not_there_is_refused(words: list[str]) -> None:
    with pytest.raises(ConfigError, match="specserve check --help"):
        check(words)
