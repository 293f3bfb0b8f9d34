import math

import torch

from specserve.torch_engine.logprobs import emitted_logprobs, row_logprobs

LOGITS = torch.tensor([[[1.0, 2.0, 4.0, 3.0], [0.0, 0.0, 0.0, 9.0]]])


def test_logprobs_are_those_of_the_raw_logits() -> None:
    logprobs = emitted_logprobs(LOGITS, torch.tensor([[1, 3]]), 0)

    entries = row_logprobs(logprobs, 0, [1, 3], 0)

    total = sum(math.exp(x) for x in (1, 2, 4, 3))
    assert [1, 3] == [entry.token_id for entry in entries]
    assert math.isclose(2 - math.log(total), entries[0].logprob, rel_tol=1e-6)
    assert ((), ()) == tuple(entry.top for entry in entries)


def test_alternatives_come_likeliest_first_and_as_many_as_asked() -> None:
    logprobs = emitted_logprobs(LOGITS, torch.tensor([[1, 3]]), 3)

    (entry,) = row_logprobs(logprobs, 0, [1], 2)

    assert [2, 3] == [token for token, _ in entry.top]
