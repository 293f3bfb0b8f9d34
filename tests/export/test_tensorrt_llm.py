import pytest
from hypothesis import given, settings

from specserve.config.policy import AlwaysPolicy, DepthSchedulePolicy
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.export.run import translate
from specserve.export.source import read_source
from specserve.export.tensorrt_llm import TENSORRT_LLM
from tests.export.engine_models import old_tensorrt_llm_steps, tensorrt_llm_steps
from tests.export.runs import LARGEST, policy_steps, run_with, schedule, schedules, threshold

ALWAYS = AlwaysPolicy(kind="always")


def _speculative(run: RunConfig) -> dict[str, object]:
    settings = translate(run, TENSORRT_LLM, ())[0].settings
    speculative = settings["speculative_config"]
    assert isinstance(speculative, dict)
    return speculative


def _problems(run: RunConfig) -> list[Problem]:
    return list(TENSORRT_LLM.problems(read_source(run, "TensorRT-LLM")))


@given(schedules(shallow_start=False))
@settings(max_examples=60, deadline=None)
def test_tensorrt_llm_drafts_as_deep_as_specserve_at_every_batch_size(
    policy: DepthSchedulePolicy,
) -> None:
    run = run_with(policy.model_copy(update={"while_off": "skip"}))
    settings = translate(run, TENSORRT_LLM, ())[0].settings

    assert policy_steps(policy) == {n: tensorrt_llm_steps(settings, n) for n in range(1, 601)}


@pytest.mark.parametrize("above", [1, 2, 8, 15, 16, 17, LARGEST - 1, LARGEST])
def test_a_threshold_is_max_concurrency_which_old_and_new_versions_read_alike(above: int) -> None:
    policy = threshold(above, while_off="skip")
    settings = translate(run_with(policy), TENSORRT_LLM, ())[0].settings

    assert policy_steps(policy) == {n: tensorrt_llm_steps(settings, n) for n in range(1, 601)}
    assert policy_steps(policy) == {n: old_tensorrt_llm_steps(settings, n) for n in range(1, 601)}


def test_keys_are_the_ends_of_the_ranges() -> None:
    policy = schedule((4, 3), (8, 0), (16, 2), while_off="skip")
    speculative = _speculative(run_with(policy))

    assert {4: 3, 8: 0, 16: 2} == speculative["draft_len_schedule"]
    assert 3 == speculative["max_draft_len"]


def test_always_has_no_schedule() -> None:
    speculative = _speculative(run_with(ALWAYS))

    assert {"decoding_type", "max_draft_len", "speculative_model"} == set(speculative)


@pytest.mark.parametrize("first", [0, 1])
def test_a_schedule_that_starts_shallow_is_refused(first: int) -> None:
    [problem] = _problems(run_with(schedule((2, first), (4, first), (8, 3))))

    assert "policy.schedule" == problem.key
    assert f"no line deeper than the first, {first}" in problem.expected
    assert (
        "set 'policy.schedule=[{up_to:2,num_steps:3},{up_to:4,num_steps:3},{up_to:8,num_steps:3}]'"
        == problem.fix
    )


@given(schedules())
@settings(max_examples=40, deadline=None)
def test_exactly_the_schedules_that_start_shallow_are_refused(policy: DepthSchedulePolicy) -> None:
    deepest = max(line.num_steps for line in policy.schedule)

    assert (policy.schedule[0].num_steps < deepest) == bool(_problems(run_with(policy)))


def test_a_tree_of_one_size_is_a_dynamic_tree_without_its_root() -> None:
    speculative = _speculative(run_with(ALWAYS, speculation={"topk": 4, "num_draft_tokens": 8}))

    assert (True, 4, 7, 6) == (
        speculative["use_dynamic_tree"],
        speculative["dynamic_tree_max_topK"],
        speculative["max_total_draft_tokens"],
        speculative["max_draft_len"],
    )


@pytest.mark.parametrize(("tokens", "accepted"), [(6, False), (7, True), (25, True), (26, False)])
def test_a_tree_holds_num_steps_to_num_steps_times_topk_tokens(tokens: int, accepted: bool) -> None:
    """6 steps, 4 branches: 6 to 24 tokens and the root."""
    problems = _problems(run_with(ALWAYS, speculation={"topk": 4, "num_draft_tokens": tokens}))

    assert ([] if accepted else ["speculation.num_draft_tokens"]) == [p.key for p in problems]


def test_a_tree_of_changing_depth_is_refused() -> None:
    run = run_with(threshold(8), speculation={"topk": 4, "num_draft_tokens": 8})

    assert ["speculation.topk"] == [p.key for p in _problems(run)]
