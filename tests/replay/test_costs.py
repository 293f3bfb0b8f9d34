import pytest

from specserve.calibration.table import Calibration
from specserve.replay.costs import Costs, Round, best_depth


def test_a_round_takes_what_was_measured_and_yields_what_is_expected(
    calibration: Calibration,
) -> None:
    rounds = Costs(calibration, 3).rounds(16, (0.7, 0.4, 0.1))

    assert [0, 1, 2, 3] == list(rounds)
    assert pytest.approx(0.005) == rounds[0].seconds
    assert pytest.approx(0.005 + 3 * 0.0007 + 0.0001 * 32) == rounds[3].seconds
    assert pytest.approx([16, 16 * 1.7, 16 * 2.1, 16 * 2.2]) == [r.tokens for r in rounds.values()]


def test_depths_beyond_the_built_one_do_not_exist(calibration: Calibration) -> None:
    assert (0, 1) == Costs(calibration, 1).depths
    assert (0,) == Costs(calibration, 0).depths


def test_the_best_depth_has_the_most_tokens_per_second() -> None:
    assert 1 == best_depth({0: Round(1.0, 1.0), 1: Round(1.2, 1.9), 2: Round(2.0, 2.2)})
    assert 0 == best_depth({1: Round(2.0, 2.0), 0: Round(1.0, 1.0)})
