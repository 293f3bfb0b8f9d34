from collections.abc import Sequence

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from specserve.config.policy import AlwaysPolicy, DepthSchedulePolicy
from specserve.config.run import RunConfig
from specserve.errors import Problem
from specserve.export.ranges import boundaries
from specserve.export.run import translate
from specserve.export.sglang import SGLANG, captured_sizes
from specserve.export.source import read_source
from tests.export.engine_models import sglang_padded, sglang_steps
from tests.export.runs import LARGEST, policy_steps, run_with, schedule, schedules, threshold

# SGLang's own ladder for speculation up to 160 (0.5.23), powers of two, one size, a gap at the top.
LADDERS = [
    [*range(1, 9), *range(10, 33, 2), *range(40, 65, 4), *range(72, 161, 8)],
    [1, 2, 4, 8, 16, 32, 64, 128, 256],
    [LARGEST],
    [3, 5, 480],
]
ladders = st.sampled_from(LADDERS) | st.lists(
    st.integers(1, LARGEST), min_size=1, max_size=12, unique=True
).map(sorted)


def _model_steps(run: RunConfig) -> dict[int, int]:
    translation, _ = translate(run, SGLANG, ())
    slots = translation.attachment.content if translation.attachment else None
    return {n: sglang_steps(translation.settings, slots, n) for n in range(1, LARGEST + 1)}


def _problems(run: RunConfig) -> list[Problem]:
    return list(SGLANG.problems(read_source(run, "SGLang")))


def _missing(policy: DepthSchedulePolicy, sizes: Sequence[int]) -> list[int]:
    """Boundaries across which a batch and the next larger one are padded to the same size."""
    run = run_with(policy)
    ends = boundaries(read_source(run, "SGLang").ranges)
    return [end for end in ends if sglang_padded(sizes, end) == sglang_padded(sizes, end + 1)]


@given(schedules(), st.integers(1, LARGEST))
@example(schedule((1, 1)), 1)
@settings(max_examples=60, deadline=None)
def test_auto_captures_the_boundaries_so_sglang_drafts_as_deep_as_specserve(
    policy: DepthSchedulePolicy, limit: int
) -> None:
    """Beyond the admission limit too, in case somebody raises it in SGLang."""
    assert policy_steps(policy) == _model_steps(run_with(policy, limit=limit))


@given(schedules(), ladders)
@settings(max_examples=80, deadline=None)
def test_a_given_ladder_is_exact_or_refused_by_the_sizes_that_it_lacks(
    policy: DepthSchedulePolicy, sizes: list[int]
) -> None:
    """Refused only where no table at all could do it: two batches of one size, two depths."""
    missing = _missing(policy, sizes)
    problems = _problems(run_with(policy, graph_sizes=sizes))

    if not missing:
        assert [] == problems
        assert policy_steps(policy) == _model_steps(run_with(policy, graph_sizes=sizes))
        return
    [problem] = problems
    assert "cuda_graph.batch_sizes" == problem.key
    assert problem.expected.startswith(f"{', '.join(map(str, missing))} among the sizes")
    mended = sorted({*sizes, *missing})
    assert "[" + ",".join(map(str, mended)) + "]" in problem.fix
    assert policy_steps(policy) == _model_steps(run_with(policy, graph_sizes=mended))


@given(schedules())
@settings(max_examples=30, deadline=None)
def test_without_graphs_nothing_is_padded(policy: DepthSchedulePolicy) -> None:
    run = run_with(policy, kind="off", graph_sizes=[7])
    settings = translate(run, SGLANG, ())[0].settings

    assert True is settings["disable-decode-cuda-graph"]
    assert "cuda-graph-bs-decode" not in settings
    assert policy_steps(policy) == _model_steps(run)


@pytest.mark.parametrize("above", [1, 2, 8, 15, 16, 17, LARGEST - 1, LARGEST])
def test_a_threshold_is_exact(above: int) -> None:
    assert policy_steps(threshold(above)) == _model_steps(run_with(threshold(above), limit=16))


def test_the_ladder_gains_the_boundaries_below_the_admission_limit() -> None:
    source = read_source(run_with(schedule((5, 3), (12, 2), (40, 1)), limit=32), "SGLang")

    assert (1, 2, 4, 5, 8, 12, 16, 32) == captured_sizes(source)


def test_off_above_n_is_a_key_n_plus_1() -> None:
    translation, _ = translate(run_with(threshold(8), limit=16), SGLANG, ())

    assert translation.attachment is not None
    assert {"1": {"candidate_steps": [6]}, "9": {"candidate_steps": [0]}} == dict(
        translation.attachment.content
    )
    assert "speculative-adaptive-config" == translation.attachment.key
    assert (1, 2, 4, 8, 16) == translation.settings["cuda-graph-bs-decode"]


@pytest.mark.parametrize(
    ("while_off", "environment"),
    [("warm", {}), ("skip", {"SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND": "1"})],
)
def test_both_ways_to_be_off_are_kept(while_off: str, environment: dict[str, str]) -> None:
    translation, _ = translate(run_with(threshold(8, while_off=while_off)), SGLANG, ())

    assert environment == translation.environment


def test_a_tree_that_never_changes_is_drafted_statically() -> None:
    run = run_with(AlwaysPolicy(kind="always"), speculation={"topk": 4, "num_draft_tokens": 8})
    translation, _ = translate(run, SGLANG, ())

    assert None is translation.attachment
    assert {
        "max-running-requests": LARGEST,
        "speculative-algorithm": "EAGLE3",
        "speculative-draft-model-path": read_source(run, "SGLang").draft_path,
        "speculative-num-steps": 6,
        "speculative-eagle-topk": 4,
        "speculative-num-draft-tokens": 8,
    } == translation.settings


def test_a_tree_of_changing_depth_is_refused() -> None:
    run = run_with(threshold(8), speculation={"topk": 4, "num_draft_tokens": 8})

    assert ["speculation.topk"] == [p.key for p in _problems(run)]
