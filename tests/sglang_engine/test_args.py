"""Golden arguments: for each shipped experiment, and for each drafter."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from specserve.config.compose import config_directory
from specserve.sglang_engine.args import Place, is_steered, map_plan, placed
from specserve.sglang_engine.arguments import ServerArguments
from specserve.sglang_engine.settle import server_arguments
from specserve.sglang_engine.versions import NEWEST, SUPPORTED, Release
from tests.sglang_engine.plans import (
    CASES,
    DATA,
    EAGLE3,
    KIMI,
    LLAMA,
    Case,
    known_arguments,
    plan_case,
    plan_of,
    sglang_part,
)

EXPERIMENTS = sorted(file.stem for file in (config_directory() / "experiment").glob("*.yaml"))


def _arguments(name: str, *overrides: str) -> ServerArguments:
    return server_arguments(plan_of(name, *overrides), NEWEST)


def _settings(name: str, *overrides: str) -> Mapping[str, object]:
    return _arguments(name, *overrides).settings


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("experiment", EXPERIMENTS)
def test_the_arguments_of_each_shipped_experiment(experiment: str, version: str) -> None:
    """As reviewed in tests/data/sglang/EXPERIMENT.txt; so far every release takes the same."""
    model = KIMI if experiment.startswith("kimi") else (f"+experiment={experiment}", *LLAMA)
    plan = plan_case(Case(overrides=model, draft={} if model == KIMI else EAGLE3))
    golden = (DATA / "sglang" / f"{experiment}.txt").read_text()

    assert golden == f"{server_arguments(plan, version)}\n"


@pytest.mark.parametrize("version", SUPPORTED)
@pytest.mark.parametrize("name", sorted(CASES))
def test_every_argument_is_one_of_the_release(name: str, version: str) -> None:
    """By its name, its kind (a switch has no value) and its choices."""
    for argument in server_arguments(plan_of(name), version).arguments:
        [known] = [
            entry
            for entry in known_arguments()
            if entry["flag"] == argument.flag
            and SUPPORTED.index(entry["since"])
            <= SUPPORTED.index(version)
            <= SUPPORTED.index(entry["until"])
        ]
        choices = known["choices"]

        assert argument.field == known["field"]
        assert known["switch"] == (argument.value is True)
        assert choices is None or argument.value in choices


@pytest.mark.parametrize("name", sorted(CASES))
def test_no_setting_is_given_twice(name: str) -> None:
    fields = [argument.field for argument in _arguments(name).arguments]

    assert len(set(fields)) == len(fields)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("off", {}),
        ("eagle3", {"algorithm": "EAGLE3", "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4}),
        (
            "eagle3_tree",
            {"algorithm": "EAGLE3", "num_steps": 3, "eagle_topk": 4, "num_draft_tokens": 8},
        ),
        ("eagle", {"algorithm": "EAGLE", "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4}),
        ("mtp", {"algorithm": "NEXTN", "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4}),
        (
            "standalone",
            {"algorithm": "STANDALONE", "num_steps": 3, "eagle_topk": 1, "num_draft_tokens": 4},
        ),
        (
            "ngram",
            {
                "algorithm": "NGRAM",
                "num_draft_tokens": 12,
                "ngram_max_trie_depth": 18,
                "ngram_min_bfs_breadth": 1,
                "ngram_max_bfs_breadth": 10,
                "ngram_match_type": "BFS",
                "ngram_capacity": 10_000_000,
            },
        ),
        ("dflash", {"algorithm": "DFLASH", "num_draft_tokens": 12}),
    ],
)
def test_how_each_drafter_is_asked_for(name: str, expected: dict[str, object]) -> None:
    aside = {"adaptive", "adaptive_config", "draft_model_path", "draft_model_quantization"}
    found = {
        field.removeprefix("speculative_"): value
        for field, value in _settings(name).items()
        if field.startswith("speculative_")
    }

    assert expected == {name: value for name, value in found.items() if name not in aside}


def test_layers_in_the_targets_checkpoint_are_named_as_the_draft() -> None:
    """SGLang's own default would be right for some targets only; their form is the target's."""
    settings = _settings("mtp")

    assert settings["model_path"] == settings["speculative_draft_model_path"]
    assert "speculative_draft_model_quantization" not in settings


@pytest.mark.parametrize(
    ("name", "overrides", "target", "draft"),
    [
        ("eagle3", (), None, "unquant"),
        ("eagle3", ("quantization.draft=inherit",), None, "unquant"),
        ("eagle3", ("quantization.draft=fp8",), None, "fp8"),
        ("eagle3", ("quantization=fp8",), "fp8", "unquant"),
        ("eagle3", ("quantization=fp8", "quantization.draft=inherit"), "fp8", "fp8"),
        ("kimi", (), None, "unquant"),
        ("kimi", ("quantization.draft=fp8",), None, "fp8"),
    ],
)
def test_the_drafts_quantization_is_never_left_to_sglang(
    name: str, overrides: tuple[str, ...], target: str | None, draft: str
) -> None:
    """A draft that is not asked otherwise inherits the target's scheme there. (E01)"""
    settings = _settings(name, *overrides)

    assert target == settings.get("quantization")
    assert draft == settings["speculative_draft_model_quantization"]


@pytest.mark.parametrize(
    ("policy", "depths"),
    [
        ("off", [0, 3]),
        ("batch_threshold", [0, 3]),
        ("depth_schedule", [0, 1, 3]),
        ("acceptance", [0, 1, 2, 3]),
    ],
)
def test_a_policy_that_switches_has_a_state_for_each_depth(policy: str, depths: list[int]) -> None:
    arguments = _arguments("eagle3", f"policy={policy}")
    [content] = arguments.files.values()

    assert arguments.settings["speculative_adaptive"] is True
    assert {"1": {"candidate_steps": depths}} == json.loads(content)


def test_a_policy_that_never_switches_costs_no_further_states() -> None:
    settings = _settings("eagle3_always")

    assert not is_steered(plan_of("eagle3_always"))
    assert not {field for field in settings if "adaptive" in field}


@pytest.mark.parametrize(
    ("while_off", "environment"),
    [
        ("warm", {}),
        ("skip", {"SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND": "1"}),
        ("refill", {"SGLANG_SPEC_SKIP_ZERO_STEP_DRAFT_EXTEND": "1"}),
    ],
)
def test_the_drafts_state_is_kept_up_while_off_only_if_it_is_to_be_warm(
    while_off: str, environment: dict[str, str]
) -> None:
    arguments = _arguments("eagle3", f"policy.while_off={while_off}")

    assert environment == {v.name: v.value for v in arguments.environment}


def test_a_cpu_has_no_graphs_and_sees_no_gpu() -> None:
    arguments = _arguments("eagle3_cpu")
    environment = {v.name: v.value for v in arguments.environment}

    assert "disabled" == arguments.settings["cuda_graph_backend_decode"]
    assert "disabled" == arguments.settings["cuda_graph_backend_prefill"]
    assert ("1", "") == (environment["SGLANG_USE_CPU_ENGINE"], environment["CUDA_VISIBLE_DEVICES"])


def test_a_node_knows_its_place() -> None:
    place = Place(host="127.0.0.1", port=30000, node_rank=1, dist_init_addr="10.0.0.1:5000")
    words = placed(_arguments("off"), place).command_line(Path("/run"))

    assert [
        *("--host", "127.0.0.1", "--port", "30000"),
        *("--node-rank", "1", "--dist-init-addr", "10.0.0.1:5000"),
    ] == words[-8:]


def test_one_node_meets_nobody() -> None:
    place = Place(host="127.0.0.1", port=30000, node_rank=0, dist_init_addr=None)

    assert ["--port", "30000"] == placed(_arguments("off"), place).command_line(Path())[-2:]


def test_an_untested_release_is_mapped_by_the_nearest_table() -> None:
    plan = plan_of("eagle3")
    release = Release("0.5.40", NEWEST)

    assert server_arguments(plan, NEWEST) == map_plan(plan, sglang_part(plan), release)


def test_speculation_changes_no_other_setting() -> None:
    """SGLang's own defaults differ with speculation, down to the admission limit. (A08)"""
    off, on = dict(_settings("off")), dict(_settings("eagle3"))
    changed = {field for field in off | on if off.get(field) != on.get(field)}

    assert changed
    assert all(field.startswith("speculative_") for field in changed)


@pytest.mark.parametrize("name", ["off", "eagle3", "ngram"])
def test_an_admission_limit_survives_speculation(name: str) -> None:
    settings = _settings(name, "scheduler.max_running_requests=256")

    assert 256 == settings["max_running_requests"]
