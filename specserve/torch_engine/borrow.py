"""What an EAGLE-3 head takes from its target instead of bringing it: the embedding, the lm_head."""

from collections.abc import Iterable

import torch
from torch import nn

from specserve.errors import EngineError
from specserve.torch_engine.draft import Draft
from specserve.torch_engine.linear import Linear
from specserve.torch_engine.target import Target


def borrow(draft: Draft, target: Target, names: Iterable[str], dtype: torch.dtype) -> None:
    """Share the target's tensors; copy them only if the draft computes in another dtype.

    Raises EngineError if a tensor doesn't fit: a reduced vocabulary can't use the target's lm_head.
    """
    for name in names:
        own, lender = draft.get_submodule(name), target.get_submodule(name)
        needed, lent = own.get_parameter("weight"), lender.get_parameter("weight")
        if needed.shape != lent.shape:
            raise EngineError(
                f"the draft can't borrow the target's {name}: it needs {list(needed.shape)}, "
                f"the target has {list(lent.shape)}"
            )
        if lent.dtype is not dtype:
            plain = lent.to_dense() if lent.is_mkldnn else lent
            lent = nn.Parameter(plain.to(dtype), requires_grad=False)
        own.register_parameter("weight", lent)
        if isinstance(own, Linear) and isinstance(lender, Linear):
            own.reads_ahead = lender.reads_ahead
