from collections.abc import Sequence

import pytest

from specserve.config.compose import compose_tree
from specserve.config.rules import RULES
from specserve.config.run import RunConfig
from specserve.errors import Problem
from tests.config.conftest import ApplyFixes

SGLANG = "engine=sglang"
DRAFT = "speculation.draft.path=/draft"
ALWAYS = "policy=always"
EAGLE3 = "speculation=eagle3_topk1"
STORED = ["quantization=awq", "quantization=gptq", "quantization=nvfp4"]


def _found(overrides: Sequence[str]) -> list[Problem]:
    run = RunConfig.model_validate(compose_tree(overrides))
    return [problem for rule in RULES for problem in rule.find(run)]


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        ([SGLANG, "speculation=eagle_topk1", DRAFT], None),
        (["speculation=eagle_topk1", DRAFT], "speculation"),
        ([SGLANG, "speculation=mtp"], None),
        (["speculation=mtp"], "speculation"),
        ([SGLANG, "speculation=ngram", ALWAYS], None),
        (["speculation=ngram", ALWAYS], "speculation"),
        ([SGLANG, "speculation=standalone", DRAFT, ALWAYS], None),
        ([SGLANG, "speculation=dflash", DRAFT, ALWAYS], None),
        ([SGLANG, "speculation=dflash", DRAFT, ALWAYS, "engine.device=cpu"], "speculation"),
        ([SGLANG, "speculation=ngram", ALWAYS, "engine.device=cpu"], None),
    ],
)
def test_which_engine_has_which_drafter(overrides: list[str], key: str | None) -> None:
    assert ([key] if key else []) == [problem.key for problem in _found(overrides)]


@pytest.mark.parametrize("policy", ["off", "batch_threshold", "depth_schedule", "acceptance"])
@pytest.mark.parametrize(
    ("speculation", "steered"),
    [
        ([EAGLE3], True),
        (["speculation=eagle3_topk4"], False),
        (["speculation=eagle_topk1", DRAFT], True),
        (["speculation=mtp"], True),
        (["speculation=mtp", "speculation.topk=2"], False),
        (["speculation=standalone", DRAFT], False),
        (["speculation=ngram"], False),
        (["speculation=dflash", DRAFT], False),
    ],
)
def test_sglang_steers_chains_of_eagles_family_only(
    speculation: list[str], steered: bool, policy: str, apply_fixes: ApplyFixes
) -> None:
    """A policy that could change the depth of anything else is refused, and told why."""
    overrides = [SGLANG, *speculation, f"policy={policy}"]
    found = _found(overrides)

    assert ([] if steered else ["policy"]) == [problem.key for problem in found]
    assert all("SGLang cannot change the depth of" in problem.expected for problem in found)
    assert [] == _found(apply_fixes(overrides, found))


def test_a_tree_can_be_made_a_chain_instead() -> None:
    overrides = [SGLANG, "speculation=eagle3_topk4", "policy=batch_threshold"]
    [problem] = _found(overrides)
    [_, chain] = problem.fix.split(", or set ")

    assert [] == _found([*overrides, *chain.split()])


def test_the_torch_engine_steers_trees() -> None:
    assert [] == _found(["speculation=eagle3_topk4", "policy=batch_threshold"])


@pytest.mark.parametrize(
    ("overrides", "key"),
    [
        *(([SGLANG, stored], None) for stored in [*STORED, "quantization=fp8"]),
        *(([stored], "quantization") for stored in [*STORED, "quantization=fp8"]),
        ([SGLANG, "quantization=int8"], "quantization"),
        ([SGLANG, "quantization=int4"], "quantization"),
        (["quantization=int8"], None),
        ([SGLANG, EAGLE3, "quantization.draft=fp8"], None),
        ([SGLANG, EAGLE3, "quantization.draft=inherit"], None),
        ([SGLANG, EAGLE3, "quantization.draft=int8"], "quantization.draft"),
        ([EAGLE3, "quantization.draft=int8"], None),
        ([EAGLE3, "quantization.draft=fp8"], "quantization.draft"),
        ([SGLANG, "speculation=mtp", "quantization.draft=inherit"], None),
        ([SGLANG, "speculation=mtp", "quantization.draft=fp8"], "quantization.draft"),
        ([SGLANG, "speculation=mtp", DRAFT, "quantization.draft=fp8"], None),
        ([SGLANG, "speculation=ngram", ALWAYS, "quantization.draft=fp8"], "quantization.draft"),
    ],
)
def test_which_engine_has_which_numbers(
    overrides: list[str], key: str | None, apply_fixes: ApplyFixes
) -> None:
    found = _found(overrides)

    assert ([key] if key else []) == [problem.key for problem in found]
    assert [] == _found(apply_fixes(overrides, found))


@pytest.mark.parametrize(
    ("overrides", "accepted"),
    [
        (["attention=fa3"], True),
        (["attention=sdpa"], False),
        (["engine.device=cpu", "attention=auto"], True),
        (["engine.device=cpu", "attention=triton"], False),
    ],
)
def test_sglangs_attention_is_that_of_its_device(
    overrides: list[str], accepted: bool, apply_fixes: ApplyFixes
) -> None:
    found = _found([SGLANG, *overrides])

    assert accepted == (not found)
    assert [] == _found(apply_fixes([SGLANG, *overrides], found))


@pytest.mark.parametrize(("fewest", "accepted"), [(10, True), (11, False)])
def test_a_breadth_has_an_order(fewest: int, accepted: bool, apply_fixes: ApplyFixes) -> None:
    overrides = [SGLANG, ALWAYS, "speculation=ngram", f"speculation.min_breadth={fewest}"]
    found = _found(overrides)

    assert accepted == (not found)
    assert [] == _found(apply_fixes(overrides, found))
