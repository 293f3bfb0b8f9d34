"""What SGLang would change: told where the configuration left it open, refused where it did not."""

import re
from collections.abc import Callable
from itertools import product

import pytest

from specserve.errors import ConfigError, Problem
from specserve.plan import Plan
from specserve.sglang_engine.settle import settle
from specserve.sglang_engine.versions import NEWEST, SUPPORTED
from tests.sglang_engine.plans import plan_of

_SETTING = re.compile(r"'?([\w.]+=(?:\[[^\]]*\]|[^\s,']+))'?")
MakePlan = Callable[..., Plan]


def _problems(plan: Plan, version: str = NEWEST) -> list[Problem]:
    try:
        settle(plan, version)
    except ConfigError as error:
        return list(error.problems)
    return []


def _mended(name: str, overrides: tuple[str, ...]) -> list[list[Problem]]:
    """What is still wrong after each of the remedies that the one problem offers."""
    [problem] = _problems(plan_of(name, *overrides))
    remedies = [_SETTING.findall(part) for part in problem.fix.split(", or ")]
    return [_problems(plan_of(name, *overrides, *settings)) for settings in remedies if settings]


@pytest.mark.parametrize(
    ("name", "overrides", "key"),
    [
        ("eagle3_cpu", ("scheduler=overlap",), "scheduler"),
        ("ngram", ("engine.device=cpu",), "scheduler"),
        ("eagle3", ("engine.kv_cache_dtype=fp8_e5m2",), "engine.kv_cache_dtype"),
        ("eagle3", ("cuda_graph.batch_sizes=[1,8,64]",), "cuda_graph.batch_sizes"),
        ("eagle3", ("engine.page_size=48",), "scheduler.prefill_chunk_tokens"),
        ("ngram", ("engine.page_size=16",), "engine.page_size"),
        (
            "off",
            ("scheduler.max_kv_tokens=2048", "scheduler.max_running_requests=2000"),
            "scheduler.max_running_requests",
        ),
    ],
)
def test_a_value_that_sglang_would_not_keep_is_refused_and_each_remedy_mends_it(
    name: str, overrides: tuple[str, ...], key: str
) -> None:
    [problem] = _problems(plan_of(name, *overrides))
    mended = _mended(name, overrides)

    assert key == problem.key
    assert mended
    assert [[]] * len(mended) == mended


@pytest.mark.parametrize(
    ("name", "overrides"),
    [
        ("off", ("engine.device=cpu", "scheduler=overlap")),
        ("eagle3", ("engine.kv_cache_dtype=fp8_e4m3",)),
        ("eagle3", ("engine.kv_cache_dtype=fp8_e5m2", "attention=triton")),
        ("eagle3", ("cuda_graph.batch_sizes=[1,8,16]",)),
        ("eagle3", ("engine.page_size=64",)),
        ("off", ("scheduler.max_kv_tokens=2048", "scheduler.max_running_requests=1024")),
    ],
)
def test_a_value_that_sglang_keeps_is_accepted(name: str, overrides: tuple[str, ...]) -> None:
    assert [] == _problems(plan_of(name, *overrides))


@pytest.mark.parametrize("version", SUPPORTED)
def test_a_tree_goes_with_the_overlap_scheduler(version: str) -> None:
    """Since 0.5.17 one worker drafts chains and trees under both schedulers. (A04)"""
    assert [] == _problems(plan_of("eagle3_tree", "scheduler=overlap"), version)


BACKENDS = ("fa3", "triton", "flashinfer")


@pytest.mark.parametrize(
    ("backend", "name", "page_size"),
    list(product(BACKENDS, ["eagle3", "eagle3_tree", "off", "ngram"], [1, 16])),
)
def test_which_back_ends_verify_a_tree_over_pages(backend: str, name: str, page_size: int) -> None:
    """Every cell that is refused names back-end, width and page size; off is never asked. (A05)"""
    found = _problems(plan_of(name, f"attention={backend}", f"engine.page_size={page_size}"))
    refused = name == "ngram" and page_size > 1 and backend != "flashinfer"

    assert refused == bool(found)
    for problem in found:
        assert 16 == problem.value
        assert f"attention={backend} with speculation.max_breadth=10" in problem.expected


@pytest.mark.parametrize(("name", "refused"), [("eagle3_tree", True), ("eagle3_cpu", False)])
def test_a_cpu_verifies_no_tree_over_pages(name: str, refused: bool) -> None:
    overrides = ("engine.device=cpu", "attention=auto", "scheduler=sync", "engine.page_size=16")

    assert refused == bool(_problems(plan_of(name, *overrides)))


def test_the_chain_of_a_tree_has_no_branches() -> None:
    overrides = ("scheduler=sync", "engine.page_size=16", "speculation.max_breadth=1")

    assert [] == _problems(plan_of("ngram", "attention=triton", *overrides))


def test_what_was_left_open_is_told_with_its_reason() -> None:
    plan = settle(plan_of("eagle3"), "0.5.17").plan
    told = {a.key: (a.asked, a.effective, a.reason) for a in plan.adjustments}

    assert ("auto", 1, "what fa3 takes in SGLang 0.5.17") == told["engine.page_size"]
    assert ("auto", "bfloat16", "the activation type") == told["engine.kv_cache_dtype"]


def test_what_was_asked_is_not_told_again() -> None:
    plan = settle(plan_of("tuned"), NEWEST).plan

    assert not {a.key for a in plan.adjustments} & {"engine.page_size", "engine.kv_cache_dtype"}


@pytest.mark.parametrize(
    "section",
    [
        {"quant_method": "modelopt", "quant_algo": "FP8", "kv_cache_quant_algo": "FP8"},
        {
            "quant_method": "compressed-tensors",
            "config_groups": {"a": {"weights": {"num_bits": 8, "type": "float"}}},
            "kv_cache_scheme": {"num_bits": 8, "type": "float"},
        },
    ],
)
def test_a_checkpoint_with_scales_for_the_cache_has_an_8_bit_cache(
    section: dict[str, object],
) -> None:
    plan = plan_of("off", "quantization=fp8", target={"quantization_config": section})
    [told] = [a for a in settle(plan, NEWEST).plan.adjustments if a.key == "engine.kv_cache_dtype"]

    assert "fp8_e4m3" == told.effective


def test_kv_tokens_are_whole_pages() -> None:
    plan = plan_of("off", "engine.page_size=64", "scheduler.max_kv_tokens=4100")
    [told] = [
        a for a in settle(plan, NEWEST).plan.adjustments if a.key == "scheduler.max_kv_tokens"
    ]

    assert (4100, 4096) == (told.asked, told.effective)


@pytest.mark.parametrize(("name", "told"), [("eagle3_cpu", 1), ("eagle3", 0)])
def test_greedy_verification_is_a_doubt(name: str, told: int) -> None:
    doubts = settle(plan_of(name), NEWEST).plan.warnings

    assert told == sum("temperature" in str(doubt) for doubt in doubts)
