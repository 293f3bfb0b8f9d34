from pathlib import Path

import pytest

from specserve.errors import ConfigError
from specserve.explain_policy.explanation import EngineStep, Explanation, explain

FACTS = Path(__file__).parent.parent / "data/facts/h200.json"
LLAMA = ["+experiment=topk1_v2", "model=llama31_8b"]
ABSENT = ["model.path=nobody/nothing", "model.draft_path=nobody/nothing-eagle3"]


def ask(
    running_decodes: int,
    *overrides: str,
    acceptance: str | None = None,
    calibration: Path | None = None,
    facts: Path | None = FACTS,
) -> Explanation:
    return explain(
        [*LLAMA, *overrides],
        [],
        running_decodes=running_decodes,
        acceptance=acceptance,
        calibration_file=calibration,
        facts_file=facts,
    )


def depths(explanation: Explanation) -> list[int]:
    return [arrival.decision.num_steps for arrival in explanation.arrivals]


@pytest.mark.parametrize(
    ("running", "expected"), [(6, [3, 3]), (7, [3, 0]), (8, [3, 0]), (9, [0, 0])]
)
def test_hysteresis_gives_an_answer_for_each_side(running: int, expected: list[int]) -> None:
    """The shipped threshold: disable_above=8, resume_at=6."""
    explanation = ask(running)

    assert expected == depths(explanation)
    assert list(dict.fromkeys(expected)) == [step.num_steps for step in explanation.steps]


def test_a_batch_is_padded_to_the_next_captured_size() -> None:
    explanation = ask(5, "cuda_graph.batch_sizes=[1,4,8,16]")

    step = EngineStep(num_steps=3, tokens_per_request=4, tokens=20, graph_requests=8)
    assert (step,) == explanation.steps


def test_a_batch_beyond_the_captured_sizes_has_no_graph() -> None:
    (step,) = ask(9, "cuda_graph.batch_sizes=[1,4]").steps

    assert (1, 9, None) == (step.tokens_per_request, step.tokens, step.graph_requests)


def test_without_the_checkpoints_the_sizes_are_the_same() -> None:
    here = ask(5, "cuda_graph.batch_sizes=auto")
    absent = ask(5, "cuda_graph.batch_sizes=auto", *ABSENT, facts=None)

    assert absent.report.plan is None
    assert (1, 2, 4, 8, 16) == here.graph_sizes
    assert () == absent.graph_sizes


def test_a_tree_verifies_its_best_nodes() -> None:
    explanation = ask(2, "speculation=eagle3_topk4", "policy=always", "scheduler=sync")

    assert [8] == [step.tokens_per_request for step in explanation.steps]


def test_expected_tokens_are_those_of_the_calibration(calibration_file: Path) -> None:
    yields = ask(8, calibration=calibration_file).yields

    assert [0, 1, 3] == [one.num_steps for one in yields]
    assert pytest.approx([1.0, 1.6, 2.16]) == [one.tokens_per_request for one in yields]
    assert pytest.approx([0.010, 0.012 + 0.002 / 3, 0.018]) == [o.round_seconds for o in yields]
    assert pytest.approx(8 * 2.16 / 0.018) == yields[2].tokens_per_second


def test_a_stated_acceptance_replaces_the_calibrations(calibration_file: Path) -> None:
    explanation = ask(8, acceptance="0.5", calibration=calibration_file)

    assert pytest.approx((0.5, 0.25, 0.125)) == explanation.acceptance
    assert pytest.approx(1.875) == explanation.yields[2].tokens_per_request


@pytest.mark.parametrize(
    ("acceptance", "expected"), [(None, [1, 1]), ("0.9", [3, 3]), ("0.1", [0, 0])]
)
def test_a_cost_model_decides_by_the_acceptance_in_question(
    calibration_file: Path, acceptance: str | None, expected: list[int]
) -> None:
    explanation = ask(
        12, "policy=cost_model", f"policy.calibration={calibration_file}", acceptance=acceptance
    )

    assert expected == depths(explanation)
    assert all("explores" not in arrival.decision.reason for arrival in explanation.arrivals)


def test_an_acceptance_policy_must_know_it() -> None:
    with pytest.raises(ConfigError, match=r"^acceptance=None"):
        ask(8, "policy=acceptance")
    assert [0, 0] == depths(ask(8, "policy=acceptance", acceptance="0.01"))
    assert [3, 3] == depths(ask(8, "policy=acceptance", acceptance="0.99"))


def test_round_times_of_a_chain_say_nothing_about_a_tree(calibration_file: Path) -> None:
    with pytest.raises(ConfigError, match=r"speculation\.topk=4"):
        ask(2, "speculation=eagle3_topk4", "scheduler=sync", calibration=calibration_file)


def test_a_run_without_speculation_decodes_plainly() -> None:
    explanation = ask(3, "speculation=off", "policy=off")

    assert [0, 0] == depths(explanation)
    assert () == explanation.yields
