from itertools import chain
from typing import Any

import pytest

from specserve.errors import ConfigError, Problem
from specserve.plan import Plan
from specserve.sglang_engine.extra import SYNONYMS
from specserve.sglang_engine.key_map import MAPPED, PLACE_FIELDS
from specserve.sglang_engine.settle import server_arguments
from specserve.sglang_engine.versions import NEWEST
from tests.sglang_engine.plans import known_arguments, plan_of, sglang_part


def _with_extra(plan: Plan, **extra: Any) -> Plan:  # noqa: ANN401
    sglang = sglang_part(plan)
    engine = sglang.engine.model_copy(update={"extra_args": extra})
    return plan.model_copy(update={"sglang": sglang.model_copy(update={"engine": engine})})


def _problems(plan: Plan, version: str = NEWEST) -> list[Problem]:
    with pytest.raises(ConfigError) as caught:
        server_arguments(plan, version)
    return list(caught.value.problems)


def test_an_argument_that_nothing_else_sets_is_passed_and_recorded_as_extra() -> None:
    plan = _with_extra(plan_of("off"), schedule_policy="lpm", enable_metrics=True, cpu_ids=[1, 2])
    extra = server_arguments(plan, NEWEST).arguments[-3:]

    assert [
        ("--schedule-policy", "lpm", "engine.extra_args.schedule_policy"),
        ("--enable-metrics", True, "engine.extra_args.enable_metrics"),
        ("--cpu-ids", (1, 2), "engine.extra_args.cpu_ids"),
    ] == [(argument.flag, argument.value, argument.key) for argument in extra]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("tp_size", "parallel.tensor_parallel"),
        ("tensor_parallel_size", "parallel.tensor_parallel"),
        ("model", "model.path"),
        ("speculative_num_steps", "speculation.num_steps"),
        ("prefill_attention_backend", "attention.kind"),
        ("cuda_graph_max_bs", "cuda_graph.batch_sizes"),
        ("api_key", "server.api_key"),
    ],
)
def test_what_another_key_sets_is_refused_with_that_key(name: str, key: str) -> None:
    [problem] = _problems(_with_extra(plan_of("off"), **{name: "x"}))

    assert f"engine.extra_args.{name}" == problem.key
    assert f"remove it, and set {key}" == problem.fix


@pytest.mark.parametrize(
    ("name", "value", "fix"),
    [
        ("port", 1, "remove it"),
        ("nccl_init_addr", "x", "remove it"),
        ("disable_radix_cache", False, "remove it"),
        ("schedule-policy", "lpm", "name it schedule_policy"),
        ("--schedule-policy", "lpm", "name it schedule_policy"),
        ("config", "x.yaml", "remove it, and name them in engine.extra_args"),
    ],
)
def test_what_cannot_be_passed_is_refused(name: str, value: object, fix: str) -> None:
    [problem] = _problems(_with_extra(plan_of("off"), **{name: value}))

    assert fix == problem.fix


def test_all_of_them_are_told_at_once() -> None:
    assert 2 == len(_problems(_with_extra(plan_of("off"), port=1, tp_size=2)))


@pytest.mark.parametrize("field", sorted({*chain(*MAPPED.values()), *PLACE_FIELDS}))
def test_every_name_of_a_mapped_setting_is_taken(field: str) -> None:
    """In every release; what is new in a release shows here."""
    names = {e["flag"][2:].replace("-", "_") for e in known_arguments() if e["field"] == field}

    assert {field} == {SYNONYMS.get(name, name) for name in names}


@pytest.mark.parametrize("name", sorted(SYNONYMS))
def test_every_synonym_is_a_name_of_some_release(name: str) -> None:
    assert "--" + name.replace("_", "-") in {entry["flag"] for entry in known_arguments()}


@pytest.mark.parametrize(
    ("name", "value", "accepted"),
    [
        ("enable_two_batch_overlap", True, False),
        ("enable_pdmux", True, False),
        ("attn_dp_size", 2, False),
        ("attn_dp_size", 1, True),
        ("dp_size", 2, True),
    ],
)
def test_what_switches_the_adaptive_mode_off_goes_with_a_steady_depth_only(
    name: str, value: object, accepted: bool
) -> None:
    """Else SGLang drafts at one depth for ever, with a warning in its log."""
    steered = _with_extra(plan_of("eagle3"), **{name: value})

    server_arguments(_with_extra(plan_of("eagle3_always"), **{name: value}), NEWEST)
    if accepted:
        server_arguments(steered, NEWEST)
    else:
        [problem] = _problems(steered)
        assert "remove it, or choose policy=always" == problem.fix


@pytest.mark.parametrize(
    ("name", "version", "accepted"),
    [
        ("off", "0.5.17", True),
        ("eagle3", "0.5.18", False),
        ("eagle3", "0.5.19", True),
        ("mtp", "0.5.18", False),
        ("mtp", "0.5.23", True),
        ("dflash", "0.5.17", False),
        ("dflash", "0.5.23", True),
        ("standalone", "0.5.23", False),
        ("ngram", "0.5.23", False),
    ],
)
def test_mixed_chunks_are_refused_where_sglang_switches_them_off(
    name: str, version: str, accepted: bool
) -> None:
    plan = _with_extra(plan_of(name), enable_mixed_chunk=True)

    if accepted:
        assert server_arguments(plan, version).settings["enable_mixed_chunk"] is True
    else:
        [problem] = _problems(plan, version)
        assert f"SGLang {version} switches it off with {name}" in problem.expected
