from pathlib import Path

import pytest

from specserve.explain_policy.explanation import explain
from specserve.explain_policy.text import report

FACTS = Path(__file__).parent.parent / "data/facts/h200.json"


def told(
    running_decodes: int,
    *overrides: str,
    calibration: Path | None = None,
    facts: Path | None = FACTS,
) -> str:
    return report(
        explain(
            ["+experiment=topk1_v2", *overrides],
            [],
            running_decodes=running_decodes,
            acceptance=None,
            calibration_file=calibration,
            facts_file=facts,
        )
    )


def test_the_answer_comes_first_and_the_policys_reason_second() -> None:
    first, second, *_ = told(9, "model=llama31_8b").splitlines()

    assert "batch_threshold: decodes plainly while 9 requests decode" == first
    assert "9 running decodes are more than disable_above=8" in second


def test_with_hysteresis_both_answers_are_told() -> None:
    first, below, above, *_ = told(7, "model=llama31_8b").splitlines()

    assert "drafts 3 steps if it did so before, decodes plainly if the load" in first
    assert "coming from   1, num_steps=3: 7 running decodes lie between" in below
    assert "coming from   16, off: 7 running decodes lie between" in above


@pytest.mark.parametrize(
    ("running", "expected"),
    [
        (3, "CUDA graph    padded by 1, to 4 requests, 16 tokens"),
        (4, "CUDA graph    of exactly 4 requests, 16 tokens"),
        (9, "CUDA graph    none holds this batch (the largest is for 4): runs without a graph"),
    ],
)
def test_the_graph_is_named_with_its_padding(running: int, expected: str) -> None:
    assert expected in told(running, "model=llama31_8b", "cuda_graph.batch_sizes=[1,2,4]")


def test_why_there_is_no_graph_is_said() -> None:
    assert "CUDA graph    none: cuda_graph.kind=off" in told(
        3, "model=llama31_8b", "cuda_graph=off"
    )


def test_the_best_and_the_chosen_depth_are_marked(calibration_file: Path) -> None:
    lines = told(8, "model=llama31_8b", calibration=calibration_file).splitlines()
    assert "  calibration   a made-up GPU, engine=torch, target, 2026-12-01" in lines
    marks = {line.split()[0]: line.rpartition("  ")[2] for line in lines[-3:]}

    assert {"0": "chosen", "1": "best", "3": "chosen"} == marks


def test_a_load_that_the_run_never_admits_is_not_passed_off_as_possible() -> None:
    text = told(9, "model=llama31_8b", "policy.disable_above=40")

    assert "coming from   41, off: 9 running decodes lie between" in text
    assert "scheduler.max_running_requests=16: it never comes from 41" in text


def test_what_is_beyond_the_run_or_the_calibration_is_warned_of(calibration_file: Path) -> None:
    text = told(100, "model=llama31_8b", calibration=calibration_file)

    assert "scheduler.max_running_requests=16: so many never decode at once" in text
    assert "the calibration ends at 32 running decodes" in text
