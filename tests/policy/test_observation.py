from specserve.policy.observation import RoundCounters, count_round


def test_accepted_tokens_are_counted_by_position() -> None:
    counters = count_round(3, 3, [3, 0, 1, 1])

    assert (
        RoundCounters(num_steps=3, verified=4, drafted=12, accepted_by_position=(3, 1, 1))
        == counters
    )
    assert 5 == counters.accepted


def test_a_tree_drafts_more_tokens_than_steps() -> None:
    assert (7, (1, 1)) == (
        count_round(2, 7, [2]).drafted,
        count_round(2, 7, [2]).accepted_by_position,
    )
