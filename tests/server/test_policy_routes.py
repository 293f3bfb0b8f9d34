from collections.abc import Iterator
from typing import Any

import pytest

from specserve.config.policy import PolicyConfig
from specserve.engine import PolicyState
from specserve.errors import ConfigError, Problem
from specserve.testing.scripted import ScriptedEngine
from tests.server.live import LETTERS, LiveServer, live_server, make_engine

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
    assert {"policy", "mode", "num_steps", "reason", "since_seconds", "switches"} == set(
        answer.json
    )


def test_a_new_policy_is_in_force_and_leaves_an_audit_line(live: LiveServer) -> None:
    before = live.get("/v1/policy").json["policy"]
    answer = live.send("PUT", "/v1/policy", THRESHOLD)

    assert 200 == answer.status
    assert THRESHOLD == answer.json["policy"] == live.get("/v1/policy").json["policy"]
    assert (
        "policy.replaced",
        {"before": before, "after": THRESHOLD, "client": "127.0.0.1"},
    ) == live.events[-1]


@pytest.mark.parametrize(
    ("param", "policy"),
    [
        ("policy.kind", {}),
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
                key="policy.while_off", value="refill", expected="warm", fix="set warm"
            )
            raise ConfigError([problem])

    with live_server(Shallow(LETTERS, decode=lambda ids: "")) as live:
        answer = live.send("PUT", "/v1/policy", THRESHOLD)

    assert 400 == answer.status
    assert "policy.while_off" == answer.error["param"]
    assert [
        {"key": "policy.while_off", "value": "refill", "expected": "warm", "fix": "set warm"}
    ] == answer.error["problems"]


def test_without_a_worker_there_is_no_policy() -> None:
    with live_server(make_engine(), ready=False) as live:
        answers = [live.get("/v1/policy"), live.send("PUT", "/v1/policy", {"kind": "off"})]

    assert [503, 503] == [answer.status for answer in answers]
