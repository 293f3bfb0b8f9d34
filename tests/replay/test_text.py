from collections.abc import Callable

from specserve.replay.comparison import Comparison
from specserve.replay.text import report

Compared = Callable[..., Comparison]
FLAPPING = [(second / 2, 8 + second % 2) for second in range(40)]


def test_the_verdict_holds_the_policy_against_oracle_and_settings(compared: Compared) -> None:
    lines = report(compared([(0, 128), (10, 0)], "policy=always")).splitlines()

    assert lines[0].startswith("always gets 67.1% of the oracle's tokens/s with 0 switches,")
    assert "32.9% less than the best setting that never changes (plain decoding)" == lines[1]


def test_a_load_beyond_the_measured_batches_is_said_to_be_extrapolated(compared: Compared) -> None:
    text = report(compared([(0, 1), (3, 500), (4, 0)], "policy=off"))

    assert "25.0% of the time: above 128, the largest batch measured" in text
    assert "scheduler.max_running_requests=16 would let no more decode" in text


def test_of_many_switches_the_first_are_told_and_how_many_more(compared: Compared) -> None:
    text = report(
        compared(FLAPPING, "policy=batch_threshold", "policy.disable_above=8", "policy.resume_at=8")
    )

    assert "  39 switches of batch_threshold" not in text
    assert "  38 switches of batch_threshold" in text
    assert 6 == len([line for line in text.splitlines() if " -> " in line or "33 more" in line])


def test_a_column_of_the_course_is_a_moment(compared: Compared) -> None:
    """A quarter idle, a quarter with one request, half with many."""
    text = report(compared([(0, 0), (1, 1), (2, 128), (4, 0)], "policy=batch_threshold"))
    lines = text.splitlines()
    running = next(line for line in lines if line.startswith("  running decodes"))
    lane = next(line for line in lines if line.startswith("  batch_threshold  ") and "·" in line)

    assert " " * 16 + "▁" * 16 + "█" * 32 == running[19:].removesuffix("  up to 128")
    assert " " * 16 + "3" * 16 + "·" * 32 == lane[19:]
