import math
from dataclasses import replace

import pytest

from specserve.engine import GenerationRequest
from specserve.errors import RequestError
from specserve.testing.loops import GREEDY, make_request
from specserve.torch_engine.request_check import check_request


def check(request: GenerationRequest) -> None:
    check_request(request, vocab_size=100, context_length=50, max_kv_tokens=40)


@pytest.mark.parametrize(
    ("request_", "param", "message"),
    [
        (make_request([]), "prompt", "no tokens"),
        (make_request([1] * 50), "prompt", "50 tokens: expected at most 49"),
        (make_request([100]), "prompt", r"outside 0 … 99"),
        (make_request([-1]), "prompt", r"outside 0 … 99"),
        (make_request([1], max_tokens=0), "max_tokens", "expected at least 1"),
        (make_request([1], max_tokens=10**12), "max_tokens", "the context of 50 tokens"),
        (make_request([1], max_tokens=45), "max_tokens", "the KV budget of 40 tokens"),
        (make_request([1], stop=("a", "")), "stop", "empty string"),
        (make_request([1], top_logprobs=101), "top_logprobs", "0 … 100"),
        (make_request([1], top_logprobs=-1), "top_logprobs", "0 … 100"),
        (make_request([1], sampling=replace(GREEDY, temperature=-0.1)), "temperature", "-0.1"),
        (make_request([1], sampling=replace(GREEDY, temperature=math.nan)), "temperature", "nan"),
        (make_request([1], sampling=replace(GREEDY, top_p=0.0)), "top_p", "0.0"),
        (make_request([1], sampling=replace(GREEDY, top_p=1.1)), "top_p", "1.1"),
        (make_request([1], sampling=replace(GREEDY, top_k=0)), "top_k", "top_k=0"),
        (make_request([1], sampling=replace(GREEDY, min_p=1.5)), "min_p", "1.5"),
        (
            make_request([1], sampling=replace(GREEDY, logit_bias={100: 1.0})),
            "logit_bias",
            "token 100",
        ),
        (
            make_request([1], sampling=replace(GREEDY, logit_bias={1: math.inf})),
            "logit_bias",
            "inf",
        ),
    ],
)
def test_what_can_never_be_served_is_refused_by_name(
    request_: GenerationRequest, param: str, message: str
) -> None:
    with pytest.raises(RequestError, match=message) as refused:
        check(request_)

    assert (param, 400) == (refused.value.param, refused.value.status)


@pytest.mark.parametrize(
    "request_", [make_request([99] * 39, max_tokens=1), make_request([0], max_tokens=39)]
)
def test_what_just_fits_is_taken(request_: GenerationRequest) -> None:
    check(request_)
