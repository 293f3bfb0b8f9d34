import pytest

from specserve.config.load import load_run
from specserve.config.policy import AcceptancePolicy, CostModelPolicy, PolicyConfig
from specserve.errors import ConfigError, Problem
from specserve.export.source import read_source
from tests.export.runs import run_with

_ADAPTIVE = {
    "margin": 0.1,
    "window_rounds": 64,
    "explore_every_rounds": 100,
    "bounds": {"schedule": [], "disable_above": None},
    "min_dwell_rounds": 8,
    "while_off": "warm",
}
ACCEPTANCE = AcceptancePolicy.model_validate(
    {"kind": "acceptance", "min_acceptance": 0.5, **_ADAPTIVE}
)
COST_MODEL = CostModelPolicy.model_validate(
    {"kind": "cost_model", "calibration": "c.json", "max_inter_token_ms": None, **_ADAPTIVE}
)


def _problem(*overrides: str) -> Problem:
    with pytest.raises(ConfigError) as raised:
        read_source(load_run(overrides).config, "vLLM")
    [problem] = raised.value.problems
    return problem


@pytest.mark.parametrize("policy", [ACCEPTANCE, COST_MODEL], ids=lambda policy: policy.kind)
def test_a_policy_that_needs_more_than_the_batch_size_is_refused_by_name(
    policy: PolicyConfig,
) -> None:
    with pytest.raises(ConfigError, match="nothing in the configuration of vLLM") as raised:
        read_source(run_with(policy), "vLLM")

    assert [("policy", policy.kind)] == [(p.key, p.value) for p in raised.value.problems]


def test_a_run_that_never_speculates_has_nothing_to_export() -> None:
    assert "speculation" == _problem("+experiment=baseline").key
    assert "policy" == _problem("+experiment=topk1_v2", "policy=off").key


def test_the_draft_is_named_as_the_other_engine_can_find_it() -> None:
    """A bundled pair by its folder, a hub id as it is."""
    bundled = read_source(load_run(["+experiment=topk1_v2"]).config, "vLLM")
    hub = read_source(load_run(["+experiment=topk1_v2", "model=qwen3_8b"]).config, "vLLM")

    assert bundled.draft_path.endswith("/specserve/demo/draft")
    assert "Tengyunw/qwen3_8b_eagle3" == hub.draft_path


def test_the_tokens_of_a_round_are_the_plans() -> None:
    tree = load_run(["+experiment=topk4_v1", "speculation.num_draft_tokens=auto"]).config

    assert 13 == read_source(tree, "vLLM").num_draft_tokens
