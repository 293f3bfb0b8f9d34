"""One decoder block: grouped-query attention and a SwiGLU MLP, the same in target and draft."""

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn import functional

from specserve.torch_engine.attention import Attend
from specserve.torch_engine.linear import Linear
from specserve.torch_engine.norm import RmsNorm


@dataclass(frozen=True, slots=True, kw_only=True)
class BlockShape:
    """Sizes of a block, and which of the optional tensors it has.

    `input_size` is the width that queries, keys and values are made from: the hidden size in a
    target, twice that in an EAGLE-3 head. `qk_norm` norms every query and key head.
    """

    hidden_size: int
    input_size: int
    intermediate_size: int
    num_heads: int
    num_kv_heads: int
    head_dim: int
    norm_eps: float
    qkv_bias: bool
    output_bias: bool
    mlp_bias: bool
    qk_norm: bool


class Block(nn.Module):
    """The projections that share an input are one matrix: queries, keys, values; gate, up.

    Query and key rows are stored in rotary pairs (see `rope`), so that a checkpoint's tensors have
    to be reordered on their way in.
    """

    def __init__(self, shape: BlockShape) -> None:
        super().__init__()
        hidden, eps = shape.hidden_size, shape.norm_eps
        q_width = shape.num_heads * shape.head_dim
        kv_width = shape.num_kv_heads * shape.head_dim
        self.input_layernorm = RmsNorm((hidden,), eps)
        self.qkv_proj = Linear(shape.input_size, q_width + 2 * kv_width, bias=shape.qkv_bias)
        self.o_proj = Linear(q_width, hidden, bias=shape.output_bias)
        self.post_attention_layernorm = RmsNorm((hidden,), eps)
        self.gate_up_proj = Linear(hidden, 2 * shape.intermediate_size, bias=shape.mlp_bias)
        self.down_proj = Linear(shape.intermediate_size, hidden, bias=shape.mlp_bias)
        # nn.Module's own attributes and calls cost as much as a small operation: go around them.
        self._projections = (self.qkv_proj, self.o_proj, self.gate_up_proj, self.down_proj)
        self._norms = (self.input_layernorm, self.post_attention_layernorm)
        self._intermediate_size = shape.intermediate_size
        self._has_qk_norm = shape.qk_norm
        if shape.qk_norm:
            self.qk_norm = RmsNorm((shape.num_heads + shape.num_kv_heads, shape.head_dim), eps)

    def forward(self, hidden: Tensor, attend: Attend, layer: int) -> Tensor:
        """One layer of a target: hidden [B, Q, d] -> a new [B, Q, d]."""
        return self.attend_from(self._norms[0].forward(hidden), hidden, attend, layer)

    def attend_from(self, normed: Tensor, residual: Tensor, attend: Attend, layer: int) -> Tensor:
        """Attend from `normed` [B, Q, input_size], and add to `residual` [B, Q, hidden_size].

        `layer` is the block's place in the cache. Returns a new tensor.
        """
        qkv_proj, o_proj, gate_up_proj, down_proj = self._projections
        projected = qkv_proj.forward(normed)
        if self._has_qk_norm:
            self._norm_queries_keys(projected)
        hidden = o_proj.forward(attend(layer, projected)).add_(residual)
        gate_up = gate_up_proj.forward(self._norms[1].forward(hidden))
        width = self._intermediate_size
        gate, up = gate_up.narrow(-1, 0, width), gate_up.narrow(-1, width, width)
        return down_proj.forward(functional.silu(gate).mul_(up)).add_(hidden)

    def _norm_queries_keys(self, projected: Tensor) -> None:
        num_heads, head_dim = self.qk_norm.weight.shape
        heads = projected.view(*projected.shape[:2], -1, head_dim).narrow(2, 0, num_heads)
        heads.copy_(self.qk_norm(heads))
