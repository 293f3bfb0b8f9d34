import asyncio
from typing import Any

import pytest

from specserve.config.policy import AlwaysPolicy, OffPolicy, PolicyConfig
from specserve.engine import PolicyState
from specserve.errors import ConfigError, RequestError
from specserve.server.policy_change import Fields, Pin, PinnedTo, Revert, Whole
from specserve.server.policy_control import Audit, PolicyControl
from specserve.testing.scripted import ScriptedEngine
from tests.server.live import LETTERS, SlowEngine

THRESHOLD = {
    "kind": "batch_threshold",
    "disable_above": 4,
    "resume_at": 2,
    "min_dwell_rounds": 8,
    "while_off": "warm",
}
AUDIT = Audit(client="10.0.0.1", request_id="r", asked={"a": 1})


def engine() -> ScriptedEngine:
    return SlowEngine(LETTERS, decode=lambda ids: "")


def control(events: list[tuple[str, dict[str, Any]]] | None = None) -> PolicyControl:
    kept = [] if events is None else events
    return PolicyControl(
        AlwaysPolicy(kind="always"), lambda kind, fields: kept.append((kind, fields)), start=7
    )


def test_changes_of_different_fields_at_the_same_time_all_arrive() -> None:
    async def main() -> PolicyConfig:
        built, steered = engine(), control()
        await steered.change(built, Whole(THRESHOLD), AUDIT, seen=None)
        changes = ({"disable_above": 6}, {"resume_at": 3}, {"min_dwell_rounds": 2})
        await asyncio.gather(
            *(steered.change(built, Fields(fields), AUDIT, seen=None) for fields in changes)
        )
        return (await built.stats()).policy.policy

    policy = asyncio.run(main()).model_dump()

    assert {**THRESHOLD, "disable_above": 6, "resume_at": 3, "min_dwell_rounds": 2} == policy


def test_of_two_that_have_seen_the_same_version_one_is_refused() -> None:
    async def main() -> tuple[PolicyState | BaseException, PolicyState | BaseException]:
        built, steered = engine(), control()
        seen = steered.version
        return await asyncio.gather(
            steered.change(built, Pin("off"), AUDIT, seen=seen),
            steered.change(built, Whole(THRESHOLD), AUDIT, seen=seen),
            return_exceptions=True,
        )

    first, second = asyncio.run(main())

    assert isinstance(first, PolicyState)
    assert isinstance(second, RequestError)
    assert (412, "If-Match") == (second.status, second.param)
    assert "7-0" in str(second)
    assert "7-1" in str(second)


def test_a_pin_lasts_until_the_next_change() -> None:
    async def main() -> list[PinnedTo | None]:
        built, steered = engine(), control()
        pins = [steered.pinned]
        for change in (Pin("on"), Pin("off"), Revert(), Pin("on"), Whole(THRESHOLD)):
            await steered.change(built, change, AUDIT, seen=None)
            pins.append(steered.pinned)
        return pins

    assert [None, "on", "off", None, "on", None] == asyncio.run(main())


def test_a_refused_change_leaves_everything_as_it_was() -> None:
    async def main() -> tuple[str, str | None, list[Any], PolicyConfig]:
        events: list[tuple[str, dict[str, Any]]] = []
        built, steered = engine(), control(events)
        await steered.change(built, Pin("off"), AUDIT, seen=None)
        beyond = {
            "kind": "depth_schedule",
            "schedule": [{"up_to": 4, "num_steps": 9}],
            "hysteresis": 0,
            "min_dwell_rounds": 0,
            "while_off": "warm",
        }
        for change in (Whole({"kind": "nothing"}), Whole(beyond), Fields({"resume_at": 1})):
            with pytest.raises(ConfigError):
                await steered.change(built, change, AUDIT, seen=None)
        return steered.version, steered.pinned, events, (await built.stats()).policy.policy

    version, pinned, events, policy = asyncio.run(main())

    assert ("7-1", "off", 1) == (version, pinned, len(events))
    assert OffPolicy(kind="off") == policy


def test_each_change_is_recorded_with_who_asked_what() -> None:
    events: list[tuple[str, dict[str, Any]]] = []

    asyncio.run(control(events).change(engine(), Pin("off"), AUDIT, seen=None))

    assert [
        (
            "policy.replaced",
            {
                "before": {"kind": "always"},
                "after": {"kind": "off"},
                "pinned": "off",
                "version": "7-1",
                "asked": {"a": 1},
                "client": "10.0.0.1",
                "request_id": "r",
            },
        )
    ] == events
