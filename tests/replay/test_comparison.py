from collections.abc import Callable
from pathlib import Path

import pytest

from specserve.calibration.table import Calibration
from specserve.errors import ConfigError
from specserve.replay.candidates import read_candidates
from specserve.replay.comparison import Comparison, common_costs


def test_the_best_policy_and_the_best_setting_are_those_with_most_tokens(
    compared: Callable[..., Comparison],
) -> None:
    comparison = compared([(0.0, 64), (9.0, 1), (10.0, 0)], "policy=off,always")

    assert ("off", 0) == (comparison.best.candidate.name, comparison.best_static)
    assert [0, 1, 2, 3] == list(comparison.statics)
    assert pytest.approx(1) == comparison.of_oracle(comparison.oracle)
    assert 0.5 < comparison.of_oracle(comparison.best.outcome) < 1


def test_a_policy_that_takes_unmeasured_depths_is_refused(
    calibration: Calibration, calibration_file: Path
) -> None:
    overrides = ["speculation=eagle3_topk1", "speculation.num_steps=5", "policy=off,always"]
    candidates = read_candidates(overrides, [], calibration_file, calibration)

    with pytest.raises(ConfigError) as caught:
        common_costs(calibration, candidates)
    (problem,) = caught.value.problems
    assert "always" == problem.value
    assert "(0, 1, 2, 3), but it can take [5]" in problem.expected
