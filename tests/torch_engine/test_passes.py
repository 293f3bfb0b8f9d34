"""Which widths are captured; the captures themselves need a GPU (scripts/gpu_check.py)."""

from pathlib import Path

import pytest

from specserve.plan import DraftPlan, SpeculationPlan
from specserve.torch_engine.passes import draft_widths, verify_widths


def built(*depths: int, topk: int, num_draft_tokens: int) -> SpeculationPlan:
    return SpeculationPlan(
        num_steps=max(depths),
        depths=depths,
        topk=topk,
        num_draft_tokens=num_draft_tokens,
        while_off="skip",
        draft=DraftPlan(
            path=str(Path("draft")),
            config={},
            dtype="float32",
            quantization="none",
            quantization_group_size=None,
            aux_layer_inputs=(2, 4, 5),
            draft_vocab_size=10,
            num_kv_heads=1,
            head_dim=8,
            borrowed=(),
        ),
    )


@pytest.mark.parametrize(
    ("speculation", "widths"),
    [
        (built(3, topk=1, num_draft_tokens=4), {4}),
        (built(1, 3, topk=1, num_draft_tokens=4), {2, 4}),
        (built(1, 2, 3, topk=1, num_draft_tokens=4), {2, 3, 4}),
        # A tree of one step holds no more than its four branches and the root.
        (built(1, 3, topk=4, num_draft_tokens=8), {5, 8}),
    ],
)
def test_every_built_depth_has_its_verify_pass(
    speculation: SpeculationPlan, widths: set[int]
) -> None:
    assert widths == verify_widths(speculation)


def test_the_draft_may_have_to_make_up_for_the_deepest_round_at_any_depth() -> None:
    assert {1, 2, 3, 4} == draft_widths(built(1, 3, topk=1, num_draft_tokens=4))
    assert {1, 2, 3, 4, 6} == draft_widths(built(1, 3, topk=6, num_draft_tokens=8))
