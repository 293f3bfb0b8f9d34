from pathlib import Path

import pytest

from specserve.check.machine import PlanningMachine
from specserve.config.compose import compose_tree
from specserve.review.difference import ABSENT, Change, Difference, compare
from specserve.review.document import document
from specserve.review.side import Side, look_at

FACTS = Path(__file__).parent.parent / "data/facts/kimi_k25.json"
HERE = PlanningMachine(None)
KIMI = ["+experiment=kimi_k25_int4_topk1_v2"]
TOPK1 = ["+experiment=topk1_v2"]


def _side(*overrides: str, machine: PlanningMachine = HERE) -> Side:
    return look_at(compose_tree(overrides), machine)


def _changes(changes: tuple[Change, ...]) -> dict[str, tuple[object, object]]:
    return {change.name: (change.before, change.after) for change in changes}


def test_a_run_does_not_differ_from_itself() -> None:
    assert compare(_side(*TOPK1), _side(*TOPK1)).is_empty


def test_keys_that_one_side_lacks_are_absent_not_null() -> None:
    keys = _changes(compare(_side(), _side("policy=always", "speculation=eagle3_topk1")).keys)

    assert ("off", "always") == keys["policy.kind"]
    assert (ABSENT, 3) == keys["speculation.num_steps"]


@pytest.mark.parametrize(("value", "differs"), [("1.0", False), ("true", True), ("'1'", True)])
def test_types_count_unless_both_mean_the_same(value: str, differs: bool) -> None:
    key = "scheduler.step_limit_seconds"
    difference = compare(_side(f"{key}=1"), _side(f"{key}={value}"))

    assert ([key] if differs else []) == list(_changes(difference.keys))


def test_another_secret_is_a_change_that_shows_neither() -> None:
    difference = compare(_side("server.api_key=one"), _side("server.api_key=two"))

    assert {"server.api_key": ("(hidden)", "(hidden)")} == _changes(difference.keys)


def test_engine_arguments_and_memory_follow_from_the_plans() -> None:
    machine = PlanningMachine(FACTS)
    sides = [_side(*KIMI, f"scheduler.max_running_requests={n}", machine=machine) for n in (16, 8)]
    difference = compare(*sides)
    arguments = _changes(difference.arguments)
    memory = _changes(difference.memory)

    assert ("16", "8") == arguments["--max-running-requests"]
    assert ("1 2 4 8 16", "1 2 4 8") == arguments["--cuda-graph-bs-decode"]
    before, after = memory["kv"]
    assert isinstance(before, int)
    assert before == 2 * int(str(after))
    assert memory["target_weights"][0] == memory["target_weights"][1]
    assert "scheduler.max_kv_tokens" in _changes(difference.decided)


def test_what_only_one_side_breaks_is_broken_or_mended() -> None:
    sound, broken = _side(*TOPK1), _side(*TOPK1, "policy.resume_at=9")

    assert ["SPEC403"] == [p.rule for p in compare(sound, broken).broken]
    assert ["SPEC403"] == [p.rule for p in compare(broken, sound).mended]
    assert ((), ()) == (compare(broken, broken).broken, compare(broken, broken).mended)


def test_a_machine_that_is_too_small_breaks_no_configuration() -> None:
    side = _side(*KIMI)

    assert ((), ["SPEC701"]) == (side.problems, [problem.rule for problem in side.unplanned])
    assert side.depths is not None


def test_only_new_dangers_are_dangers_of_the_change() -> None:
    open_door = _side("server.host=0.0.0.0")

    assert ["SPEC351"] == [d.rule for d in compare(_side(), open_door).dangers]
    assert ["SPEC351"] == [d.rule for d in compare(open_door, _side()).settled]
    assert () == compare(open_door, _side("server.host=0.0.0.0", "server.port=1")).dangers


def test_as_json_a_side_that_lacks_a_key_has_no_value_of_it() -> None:
    told = document(compare(_side(), _side(*TOPK1)))
    keys = {change["name"]: change for change in told["keys"]}

    assert {"name": "policy.disable_above", "key": "policy.disable_above", "after": 8} == keys[
        "policy.disable_above"
    ]
    assert {"rising": 3, "falling": 0} == told["depths"][1]["after"]


def test_an_empty_side_has_nothing() -> None:
    difference: Difference = compare(Side(), Side())

    assert difference.is_empty
