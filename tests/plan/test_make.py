"""The whole plan: every part from one call, all problems at once, nothing asked of the machine."""

import json
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from specserve.config.load import load_run
from specserve.config.run import RunConfig
from specserve.config.speculation import Eagle3Speculation
from specserve.errors import ConfigError, Problem
from specserve.facts import Facts
from specserve.plan import Plan, make_plan, missing_checkpoints

MakePlan = Callable[..., Plan]


def without(facts: Facts, *roles: str) -> Facts:
    return facts.model_copy(update=dict.fromkeys(roles))


def test_kimi_k25_plans_on_eight_gpus(kimi: Facts) -> None:
    config = load_run(["+experiment=kimi_k25_int4_topk1_v2"]).config

    plan = make_plan(config, kimi)

    assert ("sglang", "cuda", 8, "fa3") == (
        plan.engine,
        plan.device,
        plan.tensor_parallel,
        plan.attention,
    )
    assert ("kimi_k25", "compressed_tensors_int4", 32) == (
        plan.target.architecture,
        plan.target.quantization,
        plan.target.quantization_group_size,
    )
    per_token = 61 * 576 * 2
    assert plan.scheduler.max_kv_tokens * per_token == plan.memory.kv_bytes
    assert plan.memory.total_bytes <= int(97871 * 2**20 * 0.9)


def test_every_open_value_is_decided_with_its_reason(h200: Facts, plan_of: MakePlan) -> None:
    plan = plan_of(h200, "model.context_length=auto", "model.dtype=auto")

    decided = {a.key for a in plan.adjustments if a.asked == "auto"}
    assert {
        "engine.device",
        "engine.num_threads",
        "model.name",
        "model.dtype",
        "model.context_length",
        "speculation.num_draft_tokens",
        "speculation.draft.aux_layer_ids",
        "scheduler.max_kv_tokens",
        "cuda_graph.batch_sizes",
        "attention.kind",
    } == decided
    assert all(a.reason for a in plan.adjustments)


def autos(node: object, path: str = "") -> set[str]:
    """Keys of a configuration whose value is "auto"."""
    if isinstance(node, dict):
        return {key for name, child in node.items() for key in autos(child, f"{path}.{name}")}
    return {path.lstrip(".")} if node == "auto" else set()


@pytest.mark.parametrize("experiment", ["baseline", "topk1_v2", "topk4_v1"])
def test_no_auto_of_an_experiment_is_left_open(h200: Facts, experiment: str) -> None:
    model = ["model=llama31_8b", "model.context_length=auto", "scheduler.max_running_requests=4"]
    config = load_run([f"+experiment={experiment}", *model]).config

    plan = make_plan(config, h200)

    decided = {a.key for a in plan.adjustments}
    # cuda_graph.kind is a choice of the group; its open value is batch_sizes.
    assert autos(config.model_dump()) - {"cuda_graph.kind"} <= decided
    assert '"auto"' not in json.dumps(plan.model_dump(mode="json", exclude={"adjustments"}))


def test_turning_speculation_on_changes_nothing_else_without_saying_so(
    h200: Facts, plan_of: MakePlan
) -> None:
    """A08: what the user set survives; what differs stands among the adjustments."""
    limit = "scheduler.max_running_requests=60"
    plain = plan_of(h200, "speculation=off", "policy=off", limit)
    speculative = plan_of(h200, limit)

    assert 60 == speculative.scheduler.max_running_requests
    for name in (
        "engine",
        "device",
        "num_threads",
        "target",
        "attention",
        "cuda_graph_batch_sizes",
    ):
        assert getattr(plain, name) == getattr(speculative, name)


def test_problems_of_every_kind_are_told_at_once(
    cpu: Facts, problems_of: Callable[..., list[Problem]]
) -> None:
    found = problems_of(
        cpu,
        "engine.device=cuda",
        "model.context_length=4096",
        "speculation.draft.aux_layer_ids=[9,3]",
    )

    assert [
        "speculation.draft.aux_layer_ids",
        "model.context_length",
        "engine.device",
    ] == [problem.key for problem in found]


def test_later_problems_are_told_together_too(
    cpu: Facts, problems_of: Callable[..., list[Problem]]
) -> None:
    found = problems_of(cpu, "cuda_graph.batch_sizes=[2]", "scheduler.max_running_requests=4096")

    assert ["scheduler.max_running_requests", "cuda_graph.batch_sizes"] == [p.key for p in found]


def test_a_checkpoint_that_is_not_here_is_a_problem_with_its_download(
    h200: Facts, make_run: Callable[..., RunConfig]
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_plan(make_run("engine.device=cuda"), without(h200, "target", "draft"))

    target, draft = caught.value.problems
    assert ("model.path", "speculation.draft.path") == (target.key, draft.key)
    assert (
        "run `hf download meta-llama/Llama-3.1-8B-Instruct --local-dir DIR`, then set "
        "model.path=DIR" == target.fix
    )


def test_machine_problems_are_told_beside_a_missing_checkpoint(
    cpu: Facts, make_run: Callable[..., RunConfig]
) -> None:
    with pytest.raises(ConfigError) as caught:
        make_plan(make_run("engine.device=cuda"), without(cpu, "draft"))

    assert ["speculation.draft.path", "engine.device"] == [p.key for p in caught.value.problems]


def test_a_draft_is_missed_only_where_it_is_needed(
    h200: Facts, make_run: Callable[..., RunConfig]
) -> None:
    plain = make_run("speculation=off", "policy=off")

    assert () == missing_checkpoints(plain, without(h200, "draft"))
    assert 1 == len(missing_checkpoints(make_run(), without(h200, "draft")))


@pytest.fixture(scope="module")
def base(make_run: Callable[..., RunConfig]) -> RunConfig:
    return make_run()


@settings(deadline=None, max_examples=200)
@given(
    num_steps=st.integers(1, 16),
    topk=st.integers(1, 16),
    requests=st.integers(1, 4096),
    context=st.integers(1, 4096) | st.just("auto"),
    dtype=st.sampled_from(["auto", "float32", "bfloat16", "float16"]),
    on_gpu=st.booleans(),
)
def test_a_plan_fits_and_keeps_what_was_asked_or_there_is_none(
    base: RunConfig,
    h200: Facts,
    cpu: Facts,
    num_steps: int,
    topk: int,
    requests: int,
    context: int | str,
    dtype: str,
    on_gpu: bool,
) -> None:
    assert isinstance(base.speculation, Eagle3Speculation)
    config = base.model_copy(
        update={
            "speculation": base.speculation.model_copy(
                update={"num_steps": num_steps, "topk": topk}
            ),
            "scheduler": base.scheduler.model_copy(update={"max_running_requests": requests}),
            "model": base.model.model_copy(update={"context_length": context, "dtype": dtype}),
        }
    )
    facts = h200 if on_gpu else cpu
    memory = facts.machine.gpus[0].memory_bytes if on_gpu else facts.machine.memory_bytes
    refused: set[str] = set()
    try:
        plan = make_plan(config, facts)
    except ConfigError as error:
        refused = {problem.key for problem in error.problems}
    if refused:
        assert refused <= {"model.context_length", "model.path", "scheduler.max_running_requests"}
        return

    assert plan.memory.total_bytes <= memory * 0.9
    assert requests == plan.scheduler.max_running_requests
    assert context in ("auto", plan.target.context_length)
    assert dtype in ("auto", plan.target.dtype)
    assert plan.speculation is not None
    assert (num_steps, topk) == (plan.speculation.num_steps, plan.speculation.topk)
    slack = plan.scheduler.row_tokens - plan.target.context_length
    assert slack > plan.speculation.num_steps + plan.speculation.num_draft_tokens
    assert plan == Plan.model_validate_json(plan.model_dump_json())
    assert plan == make_plan(config, facts)


def test_a_bundled_draft_beside_another_target_is_named_first_if_the_pair_does_not_fit(
    h200: Facts, plan_of: MakePlan, problems_of: Callable[..., list[Problem]]
) -> None:
    bundled_draft = ["model.path=/mine", "speculation.draft.path=bundled:demo/draft"]
    unfit = "model.context_length=2049"

    first, *_ = problems_of(h200, *bundled_draft, unfit)
    own, *_ = problems_of(h200, unfit)

    assert ("model.draft_path", "bundled:demo/draft") == (first.key, first.value)
    assert "model.path=/mine" in first.expected
    assert "model.context_length" == own.key
    assert plan_of(h200, *bundled_draft).speculation is not None  # a copy of the target may fit
