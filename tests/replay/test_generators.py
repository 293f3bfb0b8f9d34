from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specserve.replay.generators import SHAPES, Shape, ShapeName, default_period, generate
from specserve.replay.trace import Trace


def shape(
    name: ShapeName, low: int = 2, high: int = 40, seconds: float = 60.0, seed: int = 0
) -> Shape:
    period = default_period(name, seconds)
    return Shape(name=name, low=low, high=high, seconds=seconds, period=period, seed=seed)


def counts(trace: Trace) -> list[int]:
    return [span.running_decodes for span in trace.spans]


@settings(deadline=None, max_examples=60)
@given(
    name=st.sampled_from(SHAPES),
    low=st.integers(0, 50),
    extent=st.integers(1, 200),
    seconds=st.floats(0.1, 1000),
    seed=st.integers(0, 10),
)
def test_every_load_stays_between_low_and_high_and_covers_its_time(
    name: ShapeName, low: int, extent: int, seconds: float, seed: int
) -> None:
    trace = generate(shape(name, low, low + extent, seconds, seed), (0.5,))

    assert set(counts(trace)) <= set(range(low, low + extent + 1))
    assert (0, seconds) == (trace.spans[0].begin, trace.seconds)
    assert all(before.end == after.begin for before, after in pairwise(trace.spans))
    assert trace.peak > low


@pytest.mark.parametrize("name", SHAPES)
def test_the_same_arguments_give_the_same_load(name: ShapeName) -> None:
    assert generate(shape(name), (0.5,)) == generate(shape(name), (0.5,))


@pytest.mark.parametrize("name", ["bursts", "diurnal"])
def test_another_seed_gives_another_load(name: ShapeName) -> None:
    assert generate(shape(name, seed=1), (0.5,)).spans != generate(shape(name), (0.5,)).spans


def test_a_ramp_goes_up_to_high_and_down_again_once() -> None:
    running = counts(generate(shape("ramp"), (0.5,)))
    top = running.index(40)

    assert list(range(2, 41)) == running[: top + 1]
    assert list(range(39, 1, -1)) == running[top + 1 :]


def test_a_sawtooth_goes_up_slowly_and_down_at_once() -> None:
    trace = generate(shape("sawtooth", low=7, high=9), (0.5,))

    assert [7, 8, 9] * 40 == counts(trace)
    assert pytest.approx([0.5] * 120, abs=0.01) == [span.seconds for span in trace.spans]


def test_bursts_alternate_with_quiet() -> None:
    running = counts(generate(shape("bursts"), (0.5,)))

    assert {2} == set(running[::2])
    assert min(running[1::2]) > 2
    assert len(running) > 10


def test_a_diurnal_load_is_low_at_the_ends_of_its_days_and_high_between() -> None:
    trace = generate(shape("diurnal", low=0, high=100), (0.5,))
    by_quarter = [
        sum(s.running_decodes * s.seconds for s in trace.spans if begin <= s.begin < begin + 7.5)
        / 7.5
        for begin in (0, 7.5, 15, 22.5, 30, 37.5, 45, 52.5)
    ]

    assert all(mean < 40 for mean in (*by_quarter[0::4], *by_quarter[3::4]))
    assert all(mean > 60 for mean in (*by_quarter[1::4], *by_quarter[2::4]))


def test_the_source_says_how_to_make_it_again() -> None:
    assert (
        "bursts 2 to 40, 60 s, period 3 s, seed 5" == generate(shape("bursts", seed=5), ()).source
    )
    assert "ramp 2 to 40, 60 s, period 60 s" == generate(shape("ramp"), ()).source
