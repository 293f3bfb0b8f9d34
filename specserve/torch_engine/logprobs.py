"""Log-probabilities of emitted tokens under the target's raw distribution."""

from typing import NamedTuple

from torch import Tensor

from specserve.engine import TokenLogprob


class Logprobs(NamedTuple):
    """For n rows and q emitted tokens each: values [n, q], ids and values of the top [n, q, t]."""

    values: Tensor
    top_ids: Tensor
    top_values: Tensor


def emitted_logprobs(logits: Tensor, tokens: Tensor, num_top: int) -> Logprobs:
    """Logits [n, q, V] before bias and temperature, and the tokens [n, q] chosen from them."""
    log_probabilities = logits.float().log_softmax(dim=-1)
    values = log_probabilities.gather(-1, tokens[..., None])[..., 0]
    top_values, top_ids = log_probabilities.topk(num_top, dim=-1)
    return Logprobs(values, top_ids, top_values)


def row_logprobs(
    logprobs: Logprobs, row: int, tokens: list[int], num_top: int
) -> tuple[TokenLogprob, ...]:
    """What the client gets for the first tokens of a row, with `num_top` alternatives each."""
    values = logprobs.values[row].tolist()
    top_ids = logprobs.top_ids[row, :, :num_top].tolist()
    top_values = logprobs.top_values[row, :, :num_top].tolist()
    return tuple(
        TokenLogprob(
            token_id=token,
            logprob=values[i],
            top=tuple(zip(top_ids[i], top_values[i], strict=True)),
        )
        for i, token in enumerate(tokens)
    )
