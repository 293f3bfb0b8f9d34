from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from specserve.config.policy import AlwaysPolicy
from specserve.engine import Mode, PolicyState, PolicySwitch
from specserve.worker.switches import SwitchReports

NEVER = PolicyState(
    policy=AlwaysPolicy(kind="always"),
    mode=Mode.SPECULATIVE,
    num_steps=3,
    reason="start",
    since_seconds=0.0,
    switches=0,
    last_switch=None,
)


def switched(times: int) -> PolicyState:
    """The state after so many switches between 3 and 0."""
    depth = 0 if times % 2 else 3
    switch = PolicySwitch(
        from_num_steps=3 - depth,
        to_num_steps=depth,
        running_decodes=9,
        reason="9 running decodes are more than disable_above=8",
        round=100 + times,
        elapsed_seconds=float(times),
    )
    mode = Mode.SPECULATIVE if depth else Mode.PLAIN
    return replace(NEVER, num_steps=depth, mode=mode, switches=times, last_switch=switch)


def test_a_switch_is_told_once_with_all_that_is_known_of_it() -> None:
    reports = SwitchReports()

    assert None is reports.look(NEVER)
    assert {
        "mode": "plain",
        "from_num_steps": 3,
        "to_num_steps": 0,
        "running_decodes": 9,
        "reason": "9 running decodes are more than disable_above=8",
        "round": 101,
        "elapsed_seconds": 1.0,
        "switches": 1,
        "left_out": 0,
    } == reports.look(switched(1))
    assert None is reports.look(switched(1))


def test_many_at_once_are_counted_and_the_latest_is_told_when_it_may() -> None:
    now = [0.0]
    reports = SwitchReports(burst=2, per_second=1.0, clock=lambda: now[0])
    told = [reports.look(switched(number)) is not None for number in range(1, 6)]
    now[0] = 1.0
    last = reports.look(switched(5))

    assert [True, True, False, False, False] == told
    assert last is not None
    assert (5, 0, 2) == (last["switches"], last["to_num_steps"], last["left_out"])


def test_the_last_look_tells_what_was_held_back() -> None:
    reports = SwitchReports(burst=1, per_second=1.0, clock=lambda: 0.0)
    reports.look(switched(1))

    assert None is reports.look(switched(4))
    last = reports.look(switched(4), last=True)
    assert last is not None
    assert (4, 2) == (last["switches"], last["left_out"])


@given(st.lists(st.tuples(st.floats(0, 2), st.integers(0, 3)), max_size=60))
def test_no_switch_is_lost_without_being_counted(steps: list[tuple[float, int]]) -> None:
    """At a bounded rate, events and those they say were left out add up to all switches."""
    now, total = [0.0], 0
    reports = SwitchReports(burst=3, per_second=1.0, clock=lambda: now[0])
    events = []
    for seconds, switches in [*steps, (1.0, 0)]:
        now[0] += seconds
        total += switches
        fields = reports.look(switched(total)) if total else None
        if fields is not None:
            events.append(fields)

    assert total == sum(1 + fields["left_out"] for fields in events)
    assert len(events) <= 3 + now[0]
