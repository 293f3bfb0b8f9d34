from specserve.policy.dwell import Dwell, held_reason


def test_the_first_depth_is_no_switch_but_holds() -> None:
    dwell = Dwell(3)

    assert (None, 0) == (dwell.num_steps, dwell.rounds_left)
    left = []
    for _ in range(4):
        dwell.take(2)
        left.append(dwell.rounds_left)
    assert [2, 1, 0, 0] == left


def test_a_switch_counts_as_the_first_round_and_a_forced_one_starts_anew() -> None:
    dwell = Dwell(3)
    dwell.take(2)

    dwell.take(1)

    assert (1, 2) == (dwell.num_steps, dwell.rounds_left)


def test_without_a_dwell_nothing_is_held() -> None:
    for min_rounds in (0, 1):
        dwell = Dwell(min_rounds)
        dwell.take(1)

        assert 0 == dwell.rounds_left


def test_the_reason_has_the_numbers() -> None:
    assert (
        "5 running decodes; the last switch holds for 2 more of min_dwell_rounds=8"
        == held_reason(5, 2, 8)
    )
