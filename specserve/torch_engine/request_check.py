"""What a request must be before it may wait for a row."""

import math
from collections.abc import Iterator

from specserve.engine import GenerationRequest, Sampling
from specserve.errors import RequestError
from specserve.torch_engine.admission import kv_tokens_of


def check_request(
    request: GenerationRequest, *, vocab_size: int, context_length: int, max_kv_tokens: int
) -> None:
    """Raises RequestError for what could never be served; the message has the numbers."""
    problems = (
        *_prompt_problems(request, vocab_size, context_length),
        *_budget_problems(request, context_length, max_kv_tokens),
        *_stop_problems(request),
        *_sampling_problems(request.sampling, vocab_size),
        *_logprob_problems(request, vocab_size),
    )
    if problems:
        param, message = problems[0]
        raise RequestError(message, param=param)


Problems = Iterator[tuple[str, str]]


def _prompt_problems(request: GenerationRequest, vocab_size: int, context_length: int) -> Problems:
    prompt = request.prompt_token_ids
    if not prompt:
        yield "prompt", "the prompt has no tokens: expected at least one"
        return
    if len(prompt) >= context_length:
        yield (
            "prompt",
            f"the prompt has {len(prompt)} tokens: expected at most {context_length - 1}, the "
            f"context of {context_length} less one to generate",
        )
    if not (0 <= min(prompt) and max(prompt) < vocab_size):
        yield "prompt", f"the prompt has token ids outside 0 … {vocab_size - 1}"


def _budget_problems(
    request: GenerationRequest, context_length: int, max_kv_tokens: int
) -> Problems:
    if request.max_tokens < 1:
        yield "max_tokens", f"max_tokens={request.max_tokens}: expected at least 1"
        return
    needed = kv_tokens_of(request)
    for limit, name in ((context_length, "the context"), (max_kv_tokens, "the KV budget")):
        if needed > limit:
            yield (
                "max_tokens",
                f"{len(request.prompt_token_ids)} prompt tokens and max_tokens="
                f"{request.max_tokens} are more than {name} of {limit} tokens",
            )


def _stop_problems(request: GenerationRequest) -> Problems:
    if "" in request.stop:
        yield "stop", "stop has an empty string, which would end every text at once"


def _sampling_problems(sampling: Sampling, vocab_size: int) -> Problems:
    if not 0 <= sampling.temperature < math.inf:
        yield "temperature", f"temperature={sampling.temperature}: expected 0 or more"
    if not 0 < sampling.top_p <= 1:
        yield "top_p", f"top_p={sampling.top_p}: expected more than 0 and at most 1"
    if not 0 <= sampling.min_p <= 1:
        yield "min_p", f"min_p={sampling.min_p}: expected 0 to 1"
    if sampling.top_k is not None and sampling.top_k < 1:
        yield "top_k", f"top_k={sampling.top_k}: expected at least 1, or none"
    for token_id, value in sampling.logit_bias.items():
        if not 0 <= token_id < vocab_size:
            yield "logit_bias", f"logit_bias names token {token_id}: expected 0 … {vocab_size - 1}"
        if not math.isfinite(value):
            yield "logit_bias", f"logit_bias of token {token_id} is {value}: expected a number"


def _logprob_problems(request: GenerationRequest, vocab_size: int) -> Problems:
    if request.top_logprobs is not None and not 0 <= request.top_logprobs <= vocab_size:
        yield (
            "top_logprobs",
            f"top_logprobs={request.top_logprobs}: expected 0 … {vocab_size}",
        )
