import pytest

from specserve.replay.costs import Round
from specserve.replay.outcome import Share, Stay, Tally


def test_rounds_of_a_depth_add_up_and_stays_follow_each_other() -> None:
    tally = Tally()
    tally.enter(0.0, 4, 3, "few")
    tally.add(3, Round(0.5, 8.0), 2)
    tally.enter(1.0, 5, 3, "still few")
    tally.add(3, Round(0.5, 10.0), 1)
    tally.enter(1.5, 9, 0, "many")
    tally.add(0, Round(0.25, 9.0), 4)
    outcome = tally.outcome()

    first = Stay(begin=0.0, running_decodes=4, num_steps=3, reason="few")
    second = Stay(begin=1.5, running_decodes=9, num_steps=0, reason="many")
    assert (first, second) == outcome.stays
    assert [(first, second)] == outcome.switches
    assert {
        0: Share(rounds=4, seconds=1.0, tokens=36.0),
        3: Share(rounds=3, seconds=1.5, tokens=26.0),
    } == outcome.by_depth
    assert (7, 2.5, 62.0) == (outcome.rounds, outcome.seconds, outcome.tokens)
    assert pytest.approx(62 / 2.5) == outcome.tokens_per_second
