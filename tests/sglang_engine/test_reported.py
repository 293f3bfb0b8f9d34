import pytest

from specserve.sglang_engine.settle import settle
from specserve.sglang_engine.versions import NEWEST
from tests.sglang_engine.plans import CASES, known_arguments, plan_of


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("eagle3", {"speculative_algorithm": "EAGLE3", "page_size": 1}),
        ("mtp", {"speculative_algorithm": "EAGLE"}),
        ("eagle", {"speculative_algorithm": "EAGLE", "speculative_draft_model_quantization": None}),
        ("fp8", {"speculative_draft_model_quantization": "fp8", "quantization": "fp8"}),
        ("ngram", {"speculative_eagle_topk": 10, "speculative_num_steps": 1}),
        ("dflash", {"speculative_eagle_topk": 1, "speculative_num_steps": 1}),
        ("tuned", {"page_size": 16, "schedule_policy": "lpm"}),
    ],
)
def test_what_sglang_makes_of_what_was_asked(name: str, expected: dict[str, object]) -> None:
    reported = settle(plan_of(name), NEWEST).reported

    assert expected == {field: reported[field] for field in expected}


def test_a_draft_on_a_frozen_cache_has_an_algorithm_of_its_own() -> None:
    plan = plan_of("mtp_alone", draft={"architectures": ["Gemma4AssistantForCausalLM"]})

    assert "FROZEN_KV_MTP" == settle(plan, NEWEST).reported["speculative_algorithm"]


@pytest.mark.parametrize("name", sorted(CASES))
def test_every_setting_is_one_of_sglangs(name: str) -> None:
    assert set(settle(plan_of(name), NEWEST).reported) <= {e["field"] for e in known_arguments()}
