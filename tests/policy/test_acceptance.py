import pytest

from specserve.config.policy import AcceptancePolicy, Bounds
from specserve.policy.acceptance import Acceptance
from tests.policy.loads import MAX_NUM_STEPS, NO_BOUNDS, Moment, bounds, drive


def make(
    *,
    margin: float = 0.0,
    explore_every_rounds: int = 0,
    min_dwell_rounds: int = 0,
    limits: Bounds = NO_BOUNDS,
) -> Acceptance:
    config = AcceptancePolicy(
        kind="acceptance",
        min_acceptance=0.3,
        margin=margin,
        window_rounds=4,
        explore_every_rounds=explore_every_rounds,
        bounds=limits,
        min_dwell_rounds=min_dwell_rounds,
        while_off="skip",
    )
    return Acceptance(config, MAX_NUM_STEPS)


def lucky(luck: float, count: int, running: int = 100) -> list[Moment]:
    return [Moment(running, luck)] * count


def depths(policy: Acceptance, load: list[Moment]) -> list[int]:
    return [decision.num_steps for decision in drive(policy, load)]


def test_it_begins_at_the_deepest_depth_that_the_bounds_allow() -> None:
    assert [3] == depths(make(margin=0.6), lucky(0.5, 1))
    assert [2] == depths(make(limits=bounds((200, 2))), lucky(0.5, 1))


@pytest.mark.parametrize(("luck", "depth"), [(0.9, 3), (0.6, 2), (0.4, 1), (0.2, 0)])
def test_it_comes_to_the_deepest_depth_that_is_accepted_often_enough(
    luck: float, depth: int
) -> None:
    """With min_acceptance=0.3: 0.6² is enough and 0.6³ is not."""
    taken = depths(make(), lucky(luck, 80))

    assert depth == taken[-1]
    assert sorted(taken, reverse=True) == taken


def test_a_deeper_depth_must_clear_the_margin() -> None:
    """0.7³ is 0.34: enough to stay at 3. At 2, where 0.32 is expected of 3, it depends."""
    improving = lucky(0.6, 80) + lucky(0.72, 80)

    assert 3 == depths(make(margin=0.1), lucky(0.7, 80))[-1]
    assert (3, 2) == (depths(make(), improving)[-1], depths(make(margin=0.1), improving)[-1])


def test_a_shallower_depth_need_not_clear_the_margin() -> None:
    """From 3 on down: 0.6² is 0.36, which is enough for 2 whatever the margin."""
    assert 2 == depths(make(margin=0.2), lucky(0.6, 80))[-1]


def test_without_looks_it_never_comes_back_from_off_and_with_them_it_does() -> None:
    """The texts get easy again: only who looks finds out."""
    load = lucky(0.1, 40) + lucky(1.0, 200)

    assert 0 == depths(make(), load)[-1]
    assert 3 == depths(make(explore_every_rounds=16), load)[-1]


def test_bounds_hold_whatever_is_accepted() -> None:
    policy = make(limits=bounds((4, 3), (8, 1), disable_above=6), min_dwell_rounds=8)
    load = [Moment(n, 1.0) for n in (4, 5, 6, 7, 8, 7, 6, 4)]

    assert [3, 1, 1, 0, 0, 0, 0, 0] == depths(policy, load)


@pytest.mark.parametrize(
    ("load", "reason"),
    [
        (
            lucky(1.0, 1),
            "100 running decodes: acceptance of draft token 3 is 1.00, enough for "
            "min_acceptance=0.3: num_steps=3",
        ),
        (
            lucky(0.1, 40),
            "100 running decodes: acceptance of draft token 1 is 0.13, too little for "
            "min_acceptance=0.3 and margin=0.05: num_steps=0",
        ),
        (
            lucky(1.0, 1, running=150),
            "150 running decodes: acceptance of draft token 1 is 1.00, enough for "
            "min_acceptance=0.3: num_steps=1; the bounds allow no more",
        ),
        (
            lucky(1.0, 1, running=300),
            "300 running decodes: the bounds allow no more than num_steps=0",
        ),
    ],
)
def test_the_reason_has_the_numbers(load: list[Moment], reason: str) -> None:
    policy = make(margin=0.05, limits=bounds((100, 3), (200, 1)))

    assert reason == drive(policy, load)[-1].reason
