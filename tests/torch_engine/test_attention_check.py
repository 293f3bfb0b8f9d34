"""The judgement itself; the passes run in test_build.py, on a real pair."""

import pytest
import torch

from specserve.errors import EngineError
from specserve.torch_engine.attention_check import expect


@pytest.mark.parametrize(
    ("tensor", "cause"),
    [
        (torch.full((2, 3), float("nan")), "verify: logits that are not finite"),
        (torch.full((2, 3), float("inf")), "verify: logits that are not finite"),
        (torch.zeros(3, 2), r"verify: logits of shape \[3, 2\], expected \[2, 3\]"),
        (None, r"verify: no logits, expected \[2, 3\]"),
    ],
)
def test_a_pass_with_strange_output_is_named(tensor: torch.Tensor | None, cause: str) -> None:
    with pytest.raises(EngineError, match=cause):
        expect("verify", "logits", tensor, (2, 3))
