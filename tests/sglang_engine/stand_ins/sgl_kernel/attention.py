"""Attention over the paged KV cache, registered as SGLang's operators on `torch.ops.sgl_kernel`.

B requests, T query tokens, Hq query and Hk key/value heads, E head width. Slots are rows of
`k_buffer` and `v_buffer` [slots, Hk, E]; `req_to_token` [R, pool_len] maps a request's positions
to its slots.
"""

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention


def decode_attention(
    query: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    output: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    loc: Tensor,
    attn_logits: Tensor,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    sm_scale: float,
    logit_cap: float,
    is_cross_attention: bool,
    sliding_window_size: int,
    encoder_lens: Tensor | None,
    sinks: Tensor | None,
) -> None:
    """Store the new `key` and `value` at slots `loc` [B], then attend one query per request.

    `query` and `output` [B, Hq, E]. `key` is None where the caller stored it. `attn_logits` is
    scratch space of the compiled kernel, and stays unused.
    """
    _refuse(logit_cap, is_cross_attention, sliding_window_size, encoder_lens, sinks)
    if key is not None and value is not None:
        k_buffer[loc] = key.view(-1, *k_buffer.shape[1:])
        v_buffer[loc] = value.view(-1, *v_buffer.shape[1:])
    for request, (row, seq_len) in enumerate(_pairs(req_pool_indices, seq_lens)):
        slots = req_to_token[row, :seq_len].long()
        output[request : request + 1] = _attend(
            query[request : request + 1], k_buffer[slots], v_buffer[slots], sm_scale, mask=None
        )


def extend_attention(
    query: Tensor,
    key: Tensor | None,
    value: Tensor | None,
    output: Tensor,
    k_buffer: Tensor,
    v_buffer: Tensor,
    k_scale: float,
    v_scale: float,
    req_to_token: Tensor,
    req_pool_indices: Tensor,
    seq_lens: Tensor,
    extend_seq_lens: Tensor,
    extend_start_loc: Tensor,
    max_len_extend: int,
    sm_scale: float,
    logit_cap: float,
    is_cross_attention: bool,
    sliding_window_size: int,
    encoder_lens: Tensor | None,
    sinks: Tensor | None,
    tree_mask: Tensor | None,
    is_causal: bool,
) -> None:
    """Attend each request's last `extend_seq_lens` tokens over its whole sequence.

    `query` and `output` [T, Hq, E], request b's part starting at `extend_start_loc[b]`; the
    caller has stored keys and values. Causal, except that `tree_mask` [B × N × N], where given,
    decides among the last N tokens.
    """
    _refuse(logit_cap, is_cross_attention, sliding_window_size, encoder_lens, sinks)
    if not is_causal:
        raise NotImplementedError("attention that is not causal")
    begins, lengths = extend_start_loc.tolist(), extend_seq_lens.tolist()
    for request, (row, seq_len) in enumerate(_pairs(req_pool_indices, seq_lens)):
        begin, length = begins[request], lengths[request]
        part, slots = slice(begin, begin + length), req_to_token[row, :seq_len].long()
        mask = torch.ones(length, seq_len, dtype=torch.bool).tril(seq_len - length)
        if tree_mask is not None:
            mask[:, seq_len - length :] = tree_mask.view(-1, length, length)[request]
        output[part] = _attend(query[part], k_buffer[slots], v_buffer[slots], sm_scale, mask)


def _attend(query: Tensor, key: Tensor, value: Tensor, scale: float, mask: Tensor | None) -> Tensor:
    """`query` [T, Hq, E] over `key` and `value` [L, Hk, E], `mask` [T, L]; [T, Hq, E]."""
    attended = scaled_dot_product_attention(
        query.transpose(0, 1),
        key.transpose(0, 1),
        value.transpose(0, 1),
        attn_mask=mask,
        scale=scale,
        enable_gqa=True,
    )
    return attended.transpose(0, 1)


def _pairs(rows: Tensor, seq_lens: Tensor) -> list[tuple[int, int]]:
    return list(zip(rows.tolist(), seq_lens.tolist(), strict=True))


def _refuse(
    logit_cap: float,
    is_cross_attention: bool,
    sliding_window_size: int,
    encoder_lens: Tensor | None,
    sinks: Tensor | None,
) -> None:
    """Raise for what no tested model has, rather than compute something else."""
    asked = {
        "logit_cap": logit_cap > 0,
        "is_cross_attention": is_cross_attention,
        "sliding_window_size": sliding_window_size > 0,
        "encoder_lens": encoder_lens is not None,
        "sinks": sinks is not None,
    }
    if any(asked.values()):
        raise NotImplementedError(", ".join(name for name, is_asked in asked.items() if is_asked))


torch.library.custom_op(
    "sgl_kernel::decode_attention_cpu",
    decode_attention,
    mutates_args=("k_buffer", "v_buffer", "output"),
)
torch.library.custom_op(
    "sgl_kernel::extend_attention_cpu", extend_attention, mutates_args=("output",)
)
