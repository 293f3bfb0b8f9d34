from argparse import Namespace
from pathlib import Path

import pytest

from specserve.calibration.table import Calibration
from specserve.config.policy import (
    BatchThresholdPolicy,
    DepthSchedulePolicy,
    DepthStep,
    OffPolicy,
    PolicyConfig,
)
from specserve.errors import ConfigError
from specserve.replay.arguments import parse_arguments
from specserve.replay.costs import Costs
from specserve.replay.load import choose_load, flag_problems
from specserve.replay.trace import Trace

THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=40, resume_at=30, min_dwell_rounds=8, while_off="skip"
)
SCHEDULE = DepthSchedulePolicy(
    kind="depth_schedule",
    schedule=[DepthStep(up_to=10, num_steps=3), DepthStep(up_to=60, num_steps=1)],
    hysteresis=0,
    min_dwell_rounds=0,
    while_off="skip",
)


def arguments(*flags: str) -> Namespace:
    return parse_arguments(["--calibration", "here", *flags])


def load(table: Calibration, *flags: str, policies: tuple[PolicyConfig, ...] = ()) -> Trace:
    return choose_load(arguments(*flags), policies, table, Costs(table, 3))


def extent(trace: Trace) -> tuple[int, int]:
    counts = [span.running_decodes for span in trace.spans]
    return min(counts), max(counts)


def test_a_made_up_load_reaches_over_the_calibrated_batches(calibration: Calibration) -> None:
    trace = load(calibration, "--generate", "ramp")

    assert ((1, 128), 60) == (extent(trace), trace.seconds)
    assert {calibration.acceptance} == {span.acceptance for span in trace.spans}


def test_flags_say_how_it_is_made(calibration: Calibration) -> None:
    flags = "--generate sawtooth --low 3 --high 7 --seconds 10 --period 5 --acceptance 0.5".split()
    trace = load(calibration, *flags)

    assert [3, 4, 5, 6, 7] * 2 == [span.running_decodes for span in trace.spans]
    assert pytest.approx((0.5, 0.25, 0.125)) == trace.spans[0].acceptance


@pytest.mark.parametrize(
    ("policies", "expected"),
    [((OffPolicy(kind="off"), THRESHOLD), (32, 48)), ((SCHEDULE, THRESHOLD), (48, 72))],
)
def test_a_sawtooth_goes_about_the_first_threshold(
    calibration: Calibration, policies: tuple[PolicyConfig, ...], expected: tuple[int, int]
) -> None:
    assert expected == extent(load(calibration, "--generate", "sawtooth", policies=policies))


def test_without_a_threshold_it_goes_about_the_break_even(calibration: Calibration) -> None:
    """By the calibration: with 3 steps up to 9 running decodes, then with fewer."""
    assert (8, 12) == extent(load(calibration, "--generate", "sawtooth"))


def test_a_recorded_load_has_its_own_acceptance_unless_told_otherwise(
    calibration: Calibration, tmp_path: Path
) -> None:
    path = tmp_path / "load.csv"
    path.write_text("time,running_decodes,acceptance\n0,1,0.5\n1,2,0.6\n2,0,\n")

    own = load(calibration, "--trace", str(path))
    told = load(calibration, "--trace", str(path), "--acceptance", "0.9")
    assert pytest.approx([0.5, 0.6]) == [span.acceptance[0] for span in own.spans]
    assert pytest.approx([0.9, 0.9]) == [span.acceptance[0] for span in told.spans]


@pytest.mark.parametrize(
    ("flags", "key"),
    [
        (["--low", "-1"], "--low"),
        (["--low", "5", "--high", "5"], "--high"),
        (["--seconds", "0"], "--seconds"),
        (["--seconds", "nan"], "--seconds"),
        (["--period", "0.001"], "--period"),
        (["--period", "-3"], "--period"),
        (["--acceptance", "2"], "--acceptance"),
    ],
)
def test_a_load_that_cannot_be_is_refused_by_flag(
    calibration: Calibration, flags: list[str], key: str
) -> None:
    with pytest.raises(ConfigError, match=f"^{key}="):
        load(calibration, "--generate", "ramp", *flags)


@pytest.mark.parametrize(
    ("flags", "keys"),
    [
        ([], ["--trace"]),
        (["--trace", "x", "--generate", "ramp"], ["--trace"]),
        (["--trace", "x", "--low", "3", "--period", "2"], ["--low", "--period"]),
        (["--generate", "ramp"], []),
    ],
)
def test_flags_that_contradict_each_other_are_named(flags: list[str], keys: list[str]) -> None:
    assert keys == [problem.key for problem in flag_problems(arguments(*flags))]


def test_a_calibration_is_needed() -> None:
    (problem,) = flag_problems(parse_arguments(["--generate", "ramp"]))

    assert "--calibration" == problem.key
