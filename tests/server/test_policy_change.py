from typing import Any

import pytest

from specserve.config.policy import (
    AcceptancePolicy,
    AlwaysPolicy,
    BatchThresholdPolicy,
    Bounds,
    OffPolicy,
    PolicyConfig,
)
from specserve.errors import ConfigError
from specserve.server.policy_change import (
    Fields,
    Outcome,
    Pin,
    Revert,
    Whole,
    outcome,
    parse_change,
)

OFF = OffPolicy(kind="off")
ALWAYS = AlwaysPolicy(kind="always")
THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=4, resume_at=2, min_dwell_rounds=8, while_off="warm"
)
ACCEPTANCE = AcceptancePolicy(
    kind="acceptance",
    min_acceptance=0.5,
    margin=0.1,
    window_rounds=32,
    explore_every_rounds=100,
    bounds=Bounds(schedule=[], disable_above=8),
    min_dwell_rounds=8,
    while_off="warm",
)


def after(body: dict[str, Any], in_force: PolicyConfig = THRESHOLD) -> Outcome:
    return outcome(parse_change(body), in_force, own=ALWAYS)


def problem_keys(body: dict[str, Any], in_force: PolicyConfig = THRESHOLD) -> list[str]:
    with pytest.raises(ConfigError) as caught:
        after(body, in_force)
    assert all(problem.expected and problem.fix for problem in caught.value.problems)
    return [problem.key for problem in caught.value.problems]


def test_a_body_is_one_of_four_changes() -> None:
    assert Whole({"kind": "off"}) == parse_change({"kind": "off"})
    assert Fields({"resume_at": 1}) == parse_change({"resume_at": 1})
    assert Pin("on") == parse_change({"pin": "on"})
    assert Revert() == parse_change({"revert": True})


def test_fields_leave_the_others_as_they_are() -> None:
    changed = THRESHOLD.model_copy(update={"resume_at": 1})

    assert Outcome(changed, None) == after({"resume_at": 1})


def test_a_section_is_merged_key_by_key_and_a_null_is_a_value() -> None:
    bounds = Bounds(schedule=[], disable_above=None)
    changed = ACCEPTANCE.model_copy(update={"bounds": bounds})

    assert Outcome(changed, None) == after({"bounds": {"disable_above": None}}, ACCEPTANCE)


def test_a_list_is_replaced_whole() -> None:
    line = {"up_to": 4, "num_steps": 2}
    first = after({"bounds": {"schedule": [line, {"up_to": 8, "num_steps": 1}]}}, ACCEPTANCE)
    second = after({"bounds": {"schedule": [line]}}, first.policy)

    assert [line] == second.policy.model_dump()["bounds"]["schedule"]
    assert 8 == second.policy.model_dump()["bounds"]["disable_above"]


def test_a_pin_is_a_fixed_policy_that_is_known_to_be_one() -> None:
    assert Outcome(ALWAYS, "on") == after({"pin": "on"})
    assert Outcome(OFF, "off") == after({"pin": "off"})
    assert Outcome(OFF, None) == after({"kind": "off"})


def test_revert_is_the_runs_own_policy() -> None:
    assert Outcome(ALWAYS, None) == after({"revert": True}, in_force=OFF)


@pytest.mark.parametrize(
    ("keys", "body"),
    [
        (["policy"], {}),
        (["pin"], {"pin": "maybe"}),
        (["pin"], {"pin": True}),
        (["pin"], {"pin": None}),
        (["pin"], {"pin": "on", "resume_at": 1}),
        (["pin"], {"pin": "on", "revert": True}),
        (["revert"], {"revert": False}),
        (["revert"], {"revert": True, "kind": "off"}),
        (["policy.kind"], {"kind": "sometimes"}),
        (["policy.threshold"], {"threshold": 4}),
        (["policy.disable_above"], {"disable_above": "4"}),
        (["policy.bounds.disable_above"], {"bounds": {"disable_above": 4}}),
        (["policy.disable_above", "policy.while_off"], {"disable_above": 0, "while_off": "cold"}),
    ],
    ids=str,
)
def test_anything_else_is_refused_with_every_problem(keys: list[str], body: dict[str, Any]) -> None:
    assert keys == problem_keys(body)


def test_fields_of_another_kind_are_no_fields_of_the_one_in_force() -> None:
    assert ["policy.resume_at"] == problem_keys({"resume_at": 1}, in_force=OFF)
