from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from specserve.config.policy import PolicyConfig
from specserve.engine import PolicyState
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId
from specserve.testing.scripted import ScriptedEngine
from tests.server.live import LETTERS, LiveServer, SlowEngine, live_server, make_engine

THRESHOLD = {
    "kind": "batch_threshold",
    "disable_above": 4,
    "resume_at": 2,
    "min_dwell_rounds": 8,
    "while_off": "warm",
}


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    with live_server(make_engine()) as server:
        yield server


def test_the_policy_tells_its_mode_and_reason(live: LiveServer) -> None:
    answer = live.get("/v1/policy")

    assert 200 == answer.status
    assert {
        "policy",
        "mode",
        "num_steps",
        "reason",
        "since_seconds",
        "switches",
        "own_policy",
        "pinned",
        "version",
        "bounds",
    } == set(answer.json)
    assert f'"{answer.json["version"]}"' == answer.headers["etag"]


def test_a_new_policy_is_in_force_and_leaves_an_audit_line(live: LiveServer) -> None:
    before = live.get("/v1/policy").json["policy"]
    answer = live.send("PUT", "/v1/policy", THRESHOLD)

    assert 200 == answer.status
    assert THRESHOLD == answer.json["policy"] == live.get("/v1/policy").json["policy"]
    assert (
        "policy.replaced",
        {
            "before": before,
            "after": THRESHOLD,
            "pinned": None,
            "version": answer.json["version"],
            "asked": THRESHOLD,
            "client": "127.0.0.1",
            "request_id": answer.headers["x-request-id"],
        },
    ) == live.events[-1]


def test_some_fields_change_and_the_others_stay(live: LiveServer) -> None:
    live.send("PUT", "/v1/policy", THRESHOLD)
    answer = live.send("PUT", "/v1/policy", {"disable_above": 6, "min_dwell_rounds": 1})

    assert 200 == answer.status
    assert {**THRESHOLD, "disable_above": 6, "min_dwell_rounds": 1} == answer.json["policy"]


def test_pin_and_revert(live: LiveServer) -> None:
    live.send("PUT", "/v1/policy", THRESHOLD)
    found = [
        live.send("PUT", "/v1/policy", body).json
        for body in ({"pin": "on"}, {"pin": "off"}, {"revert": True})
    ]

    assert [("on", 3), ("off", 0), (None, 3)] == [
        (view["pinned"], view["num_steps"]) for view in found
    ]
    assert found[-1]["own_policy"] == found[-1]["policy"] == {"kind": "always"}


@pytest.mark.parametrize("form", ['"{}"', "{}"])
def test_a_version_that_is_no_longer_is_not_overwritten(live: LiveServer, form: str) -> None:
    seen = form.format(live.get("/v1/policy").json["version"])
    answers = [
        live.send("PUT", "/v1/policy", {"pin": to}, **{"if-match": seen}) for to in ("on", "off")
    ]

    assert [200, 412] == [answer.status for answer in answers]
    assert ("If-Match", "policy_has_changed") == (
        answers[1].error["param"],
        answers[1].error["code"],
    )
    assert "on" == live.get("/v1/policy").json["pinned"]
    assert 200 == live.send("PUT", "/v1/policy", {"pin": "off"}, **{"if-match": "*"}).status


def test_many_clients_at_once_lose_no_change() -> None:
    names = ("disable_above", "resume_at", "min_dwell_rounds")
    engine = SlowEngine(LETTERS, decode=lambda ids: "")
    with live_server(engine) as live, ThreadPoolExecutor(3) as clients:
        live.send("PUT", "/v1/policy", {**THRESHOLD, "disable_above": 60})
        for value in range(1, 6):
            changes = [{name: value + 30 * (name == "disable_above")} for name in names]
            list(clients.map(lambda fields: live.send("PUT", "/v1/policy", fields), changes))
            policy = live.get("/v1/policy").json["policy"]
            assert [value + 30, value, value] == [policy[name] for name in names]
        events = [fields["version"] for kind, fields in live.events if kind == "policy.replaced"]

    assert 16 == len(set(events)) == len(events)


@pytest.mark.parametrize(
    ("param", "policy"),
    [
        ("policy", {}),
        ("pin", {"pin": "sideways"}),
        ("pin", {"pin": "on", "kind": "off"}),
        ("revert", {"revert": 1}),
        ("policy.kind", {"kind": "sometimes"}),
        ("policy.threshold", {"kind": "always", "threshold": 4}),
        ("policy.disable_above", {**THRESHOLD, "disable_above": "4"}),
        ("policy.disable_above", {**THRESHOLD, "disable_above": 0}),
        ("policy.while_off", {**THRESHOLD, "while_off": "cold"}),
        (
            "policy.min_dwell_rounds",
            {name: value for name, value in THRESHOLD.items() if name != "min_dwell_rounds"},
        ),
    ],
)
def test_what_is_no_policy_changes_nothing(
    live: LiveServer, param: str, policy: dict[str, Any]
) -> None:
    before = live.get("/v1/policy").json["policy"]
    answer = live.send("PUT", "/v1/policy", policy)

    assert 400 == answer.status
    assert param == answer.error["param"]
    assert before == live.get("/v1/policy").json["policy"]


def test_what_was_not_built_is_refused_with_its_problems() -> None:
    class Shallow(ScriptedEngine):
        async def set_policy(self, policy: PolicyConfig) -> PolicyState:
            problem = Problem(
                rule=RuleId.POLICY_NOT_BUILT_FOR,
                key="policy.while_off",
                value="refill",
                expected="warm",
                fix="set warm",
            )
            raise ConfigError([problem])

    with live_server(Shallow(LETTERS, decode=lambda ids: "")) as live:
        answer = live.send("PUT", "/v1/policy", THRESHOLD)

    assert 400 == answer.status
    assert "policy.while_off" == answer.error["param"]
    assert [
        {
            "rule": "SPEC410",
            "key": "policy.while_off",
            "value": "refill",
            "expected": "warm",
            "fix": "set warm",
        }
    ] == answer.error["problems"]


def test_without_a_worker_there_is_no_policy() -> None:
    with live_server(make_engine(), ready=False) as live:
        answers = [live.get("/v1/policy"), live.send("PUT", "/v1/policy", {"kind": "off"})]

    assert [503, 503] == [answer.status for answer in answers]
