from itertools import product

import pytest

from specserve.calibration.table import Calibration
from specserve.replay.costs import Costs
from specserve.replay.oracle import oracle, static
from specserve.replay.trace import Row, Trace, hold

ACCEPTANCE = (0.7, 0.49, 0.343)


def trace_of(*load: tuple[float, int], acceptance: tuple[float, ...] = ACCEPTANCE) -> Trace:
    return hold([Row(time=t, running_decodes=n, acceptance=acceptance) for t, n in load], "here")


def test_the_oracle_is_the_best_of_all_assignments_of_depths(calibration: Calibration) -> None:
    """Brute force: every choice of one depth for each span, by the closed formula."""
    load = [(0.0, 3), (2.0, 40), (3.0, 128), (5.0, 0), (6.0, 12), (9.0, 0)]
    trace, costs = trace_of(*load), Costs(calibration, 3)
    busy = [span for span in trace.spans if span.running_decodes]
    rates = [
        {k: one.rate for k, one in costs.rounds(s.running_decodes, s.acceptance).items()}
        for s in busy
    ]
    assignments = product(costs.depths, repeat=len(busy))
    tokens = {
        depths: sum(r[k] * s.seconds for r, k, s in zip(rates, depths, busy, strict=True))
        for depths in assignments
    }
    best = max(tokens, key=tokens.__getitem__)
    outcome = oracle(trace, costs)

    assert 4**4 == len(tokens)
    assert [k for i, k in enumerate(best) if i == 0 or best[i - 1] != k] == [
        stay.num_steps for stay in outcome.stays
    ]
    assert pytest.approx(tokens[best] / 8.0, rel=5e-3) == outcome.tokens_per_second


def test_it_knows_the_true_acceptance(calibration: Calibration) -> None:
    costs = Costs(calibration, 3)

    assert [3] == list(oracle(trace_of((0, 1), (1, 0)), costs).by_depth)
    hopeless = trace_of((0, 1), (1, 0), acceptance=(0.0, 0.0, 0.0))
    assert [0] == list(oracle(hopeless, costs).by_depth)


@pytest.mark.parametrize("depth", [0, 1, 2, 3])
def test_no_static_setting_beats_it_on_a_steady_load(calibration: Calibration, depth: int) -> None:
    costs = Costs(calibration, 3)
    for running in (1, 10, 25, 60, 128, 300):
        trace = trace_of((0, running), (10, 0))
        best = oracle(trace, costs).tokens_per_second
        assert static(trace, costs, depth).tokens_per_second <= best * (1 + 1e-12)


def test_a_static_setting_is_the_closed_formula(calibration: Calibration) -> None:
    outcome = static(trace_of((0, 16), (1, 0)), Costs(calibration, 3), 2)
    seconds = 0.005 + 2 * 0.0007 + 0.0001 * 16

    assert pytest.approx(16 * (1 + 0.7 + 0.49) / seconds) == outcome.tokens_per_second
    assert [(2, 0.0)] == [(stay.num_steps, stay.begin) for stay in outcome.stays]
