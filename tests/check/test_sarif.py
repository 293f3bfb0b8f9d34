"""SARIF 2.1.0, held against the properties and values that its official schema allows."""

import json
from pathlib import Path
from typing import Any

import pytest

from specserve.check.place import Place
from specserve.check.sarif import sarif_log
from specserve.check.survey import Finding
from specserve.errors import Doubt, Problem
from specserve.rule_ids import RuleId

# Of each object: what it must have, and what it may have besides, as far as we write it. The
# schema is closed (additionalProperties: false) for all of them.
OBJECTS = {
    "log": ({"version", "runs"}, {"$schema"}),
    "run": ({"tool"}, {"results", "columnKind"}),
    "tool": ({"driver"}, set()),
    "driver": ({"name"}, {"version", "rules"}),
    "rule": (
        {"id"},
        {"name", "shortDescription", "fullDescription", "help", "defaultConfiguration"},
    ),
    "configuration": (set(), {"level"}),
    "text": ({"text"}, set()),
    "result": ({"message"}, {"ruleId", "ruleIndex", "level", "locations"}),
    "location": (set(), {"physicalLocation"}),
    "physicalLocation": ({"artifactLocation"}, {"region"}),
    "artifactLocation": ({"uri"}, set()),
    "region": ({"startLine"}, set()),
}
LEVELS = {"none", "note", "warning", "error"}

PROBLEM = Problem(rule=RuleId.CHAIN_LENGTH, key="a.b", value=3, expected="4", fix="set a.b=4")
DOUBT = Doubt(rule=RuleId.REMOTE_CODE, key="model.trust_remote_code", text="code runs")
MINOR = Doubt(rule=RuleId.GRAPH_SIZES_UNUSED, key="cuda_graph.batch_sizes", text="no effect")


def _is(kind: str, value: dict[str, Any]) -> dict[str, Any]:
    needed, allowed = OBJECTS[kind]
    assert needed <= set(value) <= needed | allowed, f"{kind}: {sorted(value)}"
    return value


def _valid(log: dict[str, Any]) -> dict[str, Any]:
    """The one run of a log that the schema accepts."""
    assert "2.1.0" == _is("log", log)["version"]
    [run] = log["runs"]
    driver = _is("driver", _is("tool", _is("run", run)["tool"])["driver"])
    assert run["columnKind"] in ("utf16CodeUnits", "unicodeCodePoints")
    for rule in driver["rules"]:
        for name in ("shortDescription", "fullDescription", "help"):
            assert _is("text", _is("rule", rule)[name])["text"]
        assert _is("configuration", rule["defaultConfiguration"])["level"] in LEVELS
    for result in run["results"]:
        assert _is("text", _is("result", result)["message"])["text"]
        assert result["level"] in LEVELS
        assert driver["rules"][result["ruleIndex"]]["id"] == result["ruleId"]
        for location in result["locations"]:
            physical = _is("physicalLocation", _is("location", location)["physicalLocation"])
            _is("artifactLocation", physical["artifactLocation"])
            assert _is("region", physical["region"])["startLine"] >= 1
    return run  # type: ignore[no-any-return]


def test_a_log_is_one_that_the_schema_accepts(tmp_path: Path) -> None:
    place = Place(tmp_path / "a.yaml", 7)
    log = sarif_log([Finding(PROBLEM, place), Finding(DOUBT, place), Finding(MINOR, place)])
    run = _valid(json.loads(json.dumps(log)))

    assert ["error", "warning", "note"] == [result["level"] for result in run["results"]]
    assert ["SPEC301", "SPEC352", "SPEC353"] == [r["id"] for r in run["tool"]["driver"]["rules"]]


def test_a_check_without_findings_is_a_log_too() -> None:
    """A code host closes the alerts that an upload no longer has."""
    assert [] == _valid(sarif_log([]))["results"]


@pytest.mark.parametrize("name", ["a b.yaml", "conf/ü.yaml"])
def test_a_file_of_the_checkout_is_named_from_its_root(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    inside, outside = Place(tmp_path / name, 1), Place(Path("/elsewhere/c.yaml"), 1)
    run = _valid(sarif_log([Finding(PROBLEM, inside), Finding(PROBLEM, outside)]))
    uris = [
        result["locations"][0]["physicalLocation"]["artifactLocation"]["uri"]
        for result in run["results"]
    ]

    assert uris[0].isascii()
    assert not uris[0].startswith("/")
    assert "file:///elsewhere/c.yaml" == uris[1]


def test_one_fault_in_two_runs_is_one_result(tmp_path: Path) -> None:
    same = [Finding(PROBLEM, Place(tmp_path / "a.yaml", 7))] * 2

    assert 1 == len(_valid(sarif_log(same))["results"])
