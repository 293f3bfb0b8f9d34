import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specserve.config.policy import AlwaysPolicy, DepthSchedulePolicy, PolicyConfig
from specserve.config.run import RunConfig
from specserve.export.run import translate
from specserve.export.source import read_source
from specserve.export.vllm import VLLM
from tests.export.engine_models import vllm_steps
from tests.export.runs import LARGEST, policy_steps, run_with, schedule, schedules, threshold


def _settings(run: RunConfig) -> dict[str, object]:
    return dict(translate(run, VLLM, ())[0].settings)


def _model_steps(run: RunConfig) -> dict[int, int]:
    settings = _settings(run)
    return {n: vllm_steps(settings, n) for n in range(1, LARGEST + 1)}


@given(schedules(), st.integers(1, LARGEST))
@example(schedule((1, 1)), 1)
@settings(max_examples=60, deadline=None)
def test_vllm_drafts_as_deep_as_specserve_at_every_batch_size(
    policy: DepthSchedulePolicy, limit: int
) -> None:
    """Beyond the admission limit too, in case somebody raises it in vLLM."""
    assert policy_steps(policy) == _model_steps(run_with(policy, limit=limit))


@pytest.mark.parametrize("above", [1, 2, 8, 15, 16, 17, LARGEST - 1, LARGEST])
def test_a_threshold_is_exact(above: int) -> None:
    assert policy_steps(threshold(above)) == _model_steps(run_with(threshold(above), limit=16))


def test_off_above_n_is_an_entry_of_its_own() -> None:
    """The last K is carried on, so a table that ended at N would go on speculating."""
    assert {
        "max-num-seqs": 64,
        "speculative-config": {
            "method": "eagle3",
            "model": read_source(run_with(threshold(8)), "vLLM").draft_path,
            "num_speculative_tokens": 6,
            "num_speculative_tokens_per_batch_size": [(1, 8, 6), (9, 64, 0)],
        },
    } == _settings(run_with(threshold(8), limit=64))


def test_a_threshold_at_the_limit_keeps_its_last_entry_valid() -> None:
    translation, _ = translate(run_with(threshold(16), limit=16), VLLM, ())

    assert {n: vllm_steps(translation.settings, n) for n in (15, 16, 17)} == {15: 6, 16: 6, 17: 0}


def test_always_needs_no_table() -> None:
    translation, _ = translate(run_with(AlwaysPolicy(kind="always")), VLLM, ())

    speculative = translation.settings["speculative-config"]
    assert isinstance(speculative, dict)
    assert "num_speculative_tokens_per_batch_size" not in speculative
    assert {} == translation.environment


def test_a_table_needs_the_model_runner_that_heeds_it() -> None:
    translation, _ = translate(run_with(threshold(8)), VLLM, ())

    assert {"VLLM_USE_V2_MODEL_RUNNER": "0"} == translation.environment


@pytest.mark.parametrize("policy", [AlwaysPolicy(kind="always"), threshold(8)])
def test_a_tree_is_refused(policy: PolicyConfig) -> None:
    run = run_with(policy, speculation={"topk": 4, "num_draft_tokens": 8})

    assert ["speculation.topk"] == [p.key for p in VLLM.problems(read_source(run, "vLLM"))]
