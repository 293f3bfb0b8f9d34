"""Made-up loads: the shapes on which policies differ. Same arguments and seed, same load."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import cos, exp, pi, sqrt
from random import Random
from typing import Literal, assert_never, get_args

from specserve.replay.trace import Row, Trace, hold

ShapeName = Literal["ramp", "bursts", "diurnal", "sawtooth"]
SHAPES: tuple[ShapeName, ...] = get_args(ShapeName)

_SAMPLES_PER_PERIOD = 400
_BURST_SHARE = 0.3


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """`low` to `high` running decodes (0 <= low < high) for `seconds`, repeating with `period`."""

    name: ShapeName
    low: int
    high: int
    seconds: float
    period: float
    seed: int


def generate(shape: Shape, acceptance: Sequence[float]) -> Trace:
    """The load of that shape with the same acceptance throughout.

    - ramp: up from `low` to `high` and down again, once each period
    - bursts: `low`, and now and then, about once a period, a burst of any size up to `high`
    - diurnal: a day's wave from `low` over `high` to `low`, scattered as requests that arrive
      independently of each other are
    - sawtooth: up from `low` to `high`, then at once back to `low`
    """
    points = _points(shape)
    rows = [
        Row(time=time, running_decodes=running, acceptance=tuple(acceptance))
        for time, running in points
    ]
    source = f"{shape.name} {shape.low} to {shape.high}, {shape.seconds:g} s, period "
    seed = f", seed {shape.seed}" if shape.name in ("bursts", "diurnal") else ""
    return hold(rows, f"{source}{shape.period:g} s{seed}")


def default_period(name: ShapeName, seconds: float) -> float:
    """A ramp goes up and down once, a diurnal load has two days, the others repeat often."""
    match name:
        case "ramp":
            return seconds
        case "diurnal":
            return seconds / 2
        case "bursts":
            return seconds / 20
        case "sawtooth":
            return seconds / 40
        case _:
            assert_never(name)


def _points(shape: Shape) -> Iterator[tuple[float, int]]:
    """(time, running decodes from then on); the last one is the end."""
    match shape.name:
        case "ramp":
            return _samples(shape, _ramp(shape))
        case "bursts":
            return _bursts(shape)
        case "diurnal":
            return _samples(shape, _scattered_wave(shape))
        case "sawtooth":
            return _samples(shape, _rise(shape))
        case _:
            assert_never(shape.name)


def _ramp(shape: Shape) -> Callable[[float], int]:
    """Running decodes by the phase of a period, 0 up to 1."""
    return lambda phase: shape.low + round((shape.high - shape.low) * (1 - abs(1 - 2 * phase)))


def _rise(shape: Shape) -> Callable[[float], int]:
    """Each value lasts equally long, `high` included."""
    return lambda phase: shape.low + int((shape.high - shape.low + 1) * phase)


def _scattered_wave(shape: Shape) -> Callable[[float], int]:
    """To be called in the order of time; cut off at low and high.

    Requests in service scatter by the root of their mean, and for as long as they last (M/G/∞):
    here a twentieth of a period.
    """
    draws = Random(shape.seed)
    kept = exp(-20 / _SAMPLES_PER_PERIOD)
    scatter = draws.gauss(0, 1)

    def running(phase: float) -> int:
        nonlocal scatter
        scatter = kept * scatter + sqrt(1 - kept**2) * draws.gauss(0, 1)
        mean = shape.low + (shape.high - shape.low) * (1 - cos(2 * pi * phase)) / 2
        return min(max(round(mean + sqrt(mean) * scatter), shape.low), shape.high)

    return running


def _samples(shape: Shape, curve: Callable[[float], int]) -> Iterator[tuple[float, int]]:
    step = shape.period / _SAMPLES_PER_PERIOD
    index = 0
    while index * step < shape.seconds:
        yield index * step, curve(index % _SAMPLES_PER_PERIOD / _SAMPLES_PER_PERIOD)
        index += 1
    yield shape.seconds, shape.low


def _bursts(shape: Shape) -> Iterator[tuple[float, int]]:
    """Quiet and burst in turn, each of exponential length; the first burst always comes."""
    draws = Random(shape.seed)
    quiet, burst = shape.period * (1 - _BURST_SHARE), shape.period * _BURST_SHARE
    yield 0.0, shape.low
    time = min(draws.expovariate(1 / quiet), shape.seconds / 2)
    while time < shape.seconds:
        yield time, draws.randint(shape.low + 1, shape.high)
        time += draws.expovariate(1 / burst)
        if time < shape.seconds:
            yield time, shape.low
            time += draws.expovariate(1 / quiet)
    yield shape.seconds, shape.low
