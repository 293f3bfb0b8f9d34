import pytest

from specserve.config.policy import AcceptancePolicy
from specserve.policy.course import Course, Wish
from specserve.policy.observation import Decision
from tests.policy.loads import NO_BOUNDS


def make(*, explore_every_rounds: int = 0, min_dwell_rounds: int = 0) -> Course:
    return Course(
        AcceptancePolicy(
            kind="acceptance",
            min_acceptance=0.5,
            margin=0.0,
            window_rounds=8,
            explore_every_rounds=explore_every_rounds,
            bounds=NO_BOUNDS,
            min_dwell_rounds=min_dwell_rounds,
            while_off="skip",
        )
    )


def follow(course: Course, num_steps: int, limit: int = 3) -> Decision:
    return course.follow(Wish(9, num_steps, "as wished", limit, range(limit + 1)))


def depths(course: Course, wishes: list[int], limits: list[int] | None = None) -> list[int]:
    limits = limits or [3] * len(wishes)
    return [
        follow(course, wish, limit).num_steps for wish, limit in zip(wishes, limits, strict=True)
    ]


def test_without_a_dwell_every_wish_is_followed() -> None:
    assert [2, 0, 3, 1] == depths(make(), [2, 0, 3, 1])


def test_a_wish_waits_for_the_end_of_the_dwell_and_is_forgotten_if_it_passes() -> None:
    course = make(min_dwell_rounds=3)

    assert [2, 2, 2, 0, 0, 0, 0] == depths(course, [2, 0, 0, 0, 2, 2, 0])


def test_a_bound_ends_a_dwell_and_begins_another() -> None:
    course = make(min_dwell_rounds=3)

    assert [3, 1, 1, 1, 3] == depths(course, [3, 1, 3, 3, 3], [3, 1, 3, 3, 3])


def test_a_look_comes_after_so_many_rounds_in_doubt_and_lasts_a_dwell() -> None:
    course = make(explore_every_rounds=4, min_dwell_rounds=2)

    decisions = [follow(course, 1) for _ in range(12)]

    assert [1, 1, 1, 1, 2, 2, 1, 1, 1, 1, 2, 2] == [one.num_steps for one in decisions]
    assert (
        "9 running decodes: explores num_steps=2, as once in explore_every_rounds=4"
        == decisions[4].reason
        == decisions[5].reason
    )
    assert "as wished" == decisions[6].reason


def test_what_a_look_makes_wished_for_is_no_switch() -> None:
    course = make(explore_every_rounds=2, min_dwell_rounds=2)

    assert [0, 0, 1, 1, 1, 1] == depths(course, [0, 0, 0, 0, 1, 1])
    assert 1 == course.num_steps


@pytest.mark.parametrize("length", [0, 1])
def test_without_a_dwell_a_look_is_one_round(length: int) -> None:
    course = make(explore_every_rounds=2, min_dwell_rounds=length)

    assert [0, 0, 1, 0, 0, 1] == depths(course, [0] * 6)


def test_nothing_is_doubted_at_the_deepest_candidate() -> None:
    """The rounds at the deepest one do not count towards the next look."""
    course = make(explore_every_rounds=3)

    assert [3] * 8 + [0, 0, 0, 1] == depths(course, [3] * 8 + [0, 0, 0, 0])


def test_a_look_that_a_bound_forbids_does_not_come_and_one_under_way_ends() -> None:
    course = make(explore_every_rounds=2, min_dwell_rounds=4)

    assert [0, 0, 0, 0] == depths(course, [0, 0, 0, 0], [0, 0, 0, 0])
    assert [0, 0, 1, 0, 0] == depths(course, [0, 0, 0, 0, 0], [3, 3, 3, 0, 3])


def test_loads_that_keep_changing_the_depth_do_not_starve_the_looks() -> None:
    course = make(explore_every_rounds=10)

    assert 2 in depths(course, [1, 0] * 8)


def test_the_depth_in_force_is_that_of_the_last_wish_also_in_a_look() -> None:
    course = make(explore_every_rounds=1)

    assert course.num_steps is None
    depths(course, [1, 1])
    assert 1 == course.num_steps
