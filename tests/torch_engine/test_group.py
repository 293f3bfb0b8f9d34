from dataclasses import replace

import pytest
import torch

from specserve.plan import DraftPlan, SpeculationPlan
from specserve.testing.loops import GREEDY, make_request
from specserve.torch_engine.group import Depth, make_depth, make_group

CPU = torch.device("cpu")


def built(num_steps: int, topk: int, num_draft_tokens: int) -> SpeculationPlan:
    return SpeculationPlan(
        num_steps=num_steps,
        depths=tuple(range(1, num_steps + 1)),
        topk=topk,
        num_draft_tokens=num_draft_tokens,
        while_off="skip",
        draft=DraftPlan(
            path="draft",
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
    ("num_steps", "topk", "asked", "round_steps", "expected"),
    [
        (3, 1, 4, 3, 4),  # a chain is its steps and the root
        (3, 1, 4, 1, 2),
        (3, 4, 12, 3, 12),  # a tree has what was asked
        (3, 4, 12, 1, 5),  # or all that its steps can find
        (3, 4, 50, 2, 21),
    ],
)
def test_a_round_less_deep_than_built_verifies_no_more_than_it_drafts(
    num_steps: int, topk: int, asked: int, round_steps: int, expected: int
) -> None:
    depth = make_depth(built(num_steps, topk, asked), round_steps)

    assert Depth(num_steps=round_steps, topk=topk, num_draft_tokens=expected) == depth


def test_rows_are_the_neighbours_from_the_first_on() -> None:
    group = make_group(2, [make_request([1])] * 3, 10, CPU)

    assert [2, 3, 4] == list(range(8))[group.rows]


def test_settings_belong_to_the_rows_of_the_group_in_their_order() -> None:
    """Counted from its first row, not from row 0: what a round computes has the group's rows."""
    sampled = replace(GREEDY, temperature=0.5, seed=7)
    group = make_group(
        2,
        [
            make_request([1]),
            make_request([1], sampling=sampled, top_logprobs=0),
            make_request([1], sampling=replace(GREEDY, logit_bias={3: 1.0}), top_logprobs=4),
        ],
        10,
        CPU,
    )

    assert group.sampling.sampled is not None
    assert [1] == group.sampling.sampled.rows.tolist()
    assert [2] == [bias.row for bias in group.sampling.biases]
    assert group.logprobs is not None
    assert ([1, 2], 4) == (group.logprobs.rows.tolist(), group.logprobs.num_top)


def test_nobody_pays_for_logprobs_that_nobody_wants() -> None:
    """Wanting the chosen token's alone is wanting some."""
    assert make_group(0, [make_request([1])], 10, CPU).logprobs is None
    assert make_group(0, [make_request([1], top_logprobs=0)], 10, CPU).logprobs is not None
