"""A checked request -> the engine's requests: prompts as ids, limits, seeds."""

import secrets
from collections.abc import Sequence
from dataclasses import dataclass

from specserve.engine import GenerationRequest, Sampling
from specserve.errors import RequestError
from specserve.plan import Plan
from specserve.server.schemas import ChatRequest, CompletionRequest, GenerationFields
from specserve.server.tokenizer import Tokenizer

COMPLETION_MAX_TOKENS = 16  # OpenAI's default; a chat may go on to the end of the context
_NUM_SEEDS = 2**63


@dataclass(frozen=True, slots=True, kw_only=True)
class Job:
    """One request for each choice, in the order of the choices. Each prompt has n of them."""

    requests: tuple[GenerationRequest, ...]
    num_prompt_tokens: int


async def prepare_completion(
    asked: CompletionRequest, *, request_id: str, plan: Plan, tokenizer: Tokenizer
) -> Job:
    """Raises RequestError (400) for what this model can't take, naming the field."""
    _check(asked, num_prompts=len(asked.prompt), plan=plan)
    prompts = []
    for prompt in asked.prompt:
        if isinstance(prompt, str):
            _check_text(prompt, "prompt", plan=plan, tokenizer=tokenizer)
            prompt = await tokenizer.encode(prompt)
        _check_ids(prompt, "prompt", plan)
        prompts.append(prompt)
    limits = [_completion_limit(asked, len(prompt), plan) for prompt in prompts]
    return _job(asked, prompts, limits, asked.logprobs, request_id)


async def prepare_chat(
    asked: ChatRequest, *, request_id: str, plan: Plan, tokenizer: Tokenizer
) -> Job:
    """Raises RequestError (400) for what this model can't take, naming the field."""
    _check(asked, num_prompts=1, plan=plan)
    for message in asked.messages:
        _check_text(message.content, "messages", plan=plan, tokenizer=tokenizer)
    prompt = await tokenizer.encode_chat([message.for_template() for message in asked.messages])
    limit = _chat_limit(asked, len(prompt), plan)
    num_top = (asked.top_logprobs or 0) if asked.logprobs else None
    return _job(asked, [prompt], [limit], num_top, request_id)


def _job(
    asked: GenerationFields,
    prompts: Sequence[tuple[int, ...]],
    limits: Sequence[int],
    top_logprobs: int | None,
    request_id: str,
) -> Job:
    requests: list[GenerationRequest] = []
    for prompt, max_tokens in zip(prompts, limits, strict=True):
        first_seed = secrets.randbelow(_NUM_SEEDS) if asked.seed is None else asked.seed
        for choice in range(asked.n):
            sampling = Sampling(
                temperature=asked.temperature,
                top_p=asked.top_p,
                top_k=asked.top_k,
                min_p=asked.min_p,
                seed=(first_seed + choice) % _NUM_SEEDS,
                logit_bias=asked.logit_bias,
            )
            request = GenerationRequest(
                request_id=f"{request_id}-{len(requests)}",
                prompt_token_ids=prompt,
                max_tokens=max_tokens,
                sampling=sampling,
                stop=asked.stop,
                stop_token_ids=tuple(asked.stop_token_ids),
                top_logprobs=top_logprobs,
                speculation=asked.speculation,
                ignore_eos=asked.ignore_eos,
            )
            requests.append(request)
    return Job(requests=tuple(requests), num_prompt_tokens=sum(map(len, prompts)))


def _check(asked: GenerationFields, *, num_prompts: int, plan: Plan) -> None:
    """What every request of this model must keep to."""
    if asked.model != plan.target.name:
        message = f"model: {asked.model!r} is not served here, {plan.target.name!r} is"
        raise RequestError(message, param="model", status=404)
    capacity = plan.scheduler.max_running_requests + plan.scheduler.max_queued_requests
    if num_prompts * asked.n > capacity:
        message = f"n: {num_prompts} prompts with {asked.n} choices each exceed the {capacity} "
        raise RequestError(message + "requests that may run or wait", param="n")
    _check_ids(asked.stop_token_ids, "stop_token_ids", plan)
    _check_ids(asked.logit_bias, "logit_bias", plan)


def _check_ids(token_ids: Sequence[int] | dict[int, float], param: str, plan: Plan) -> None:
    vocab_size = plan.target.vocab_size
    wrong = next((id_ for id_ in token_ids if not 0 <= id_ < vocab_size), None)
    if wrong is not None:
        message = f"{param}: token id {wrong} is outside the vocabulary, 0 to {vocab_size - 1}"
        raise RequestError(message, param=param)


def _check_text(text: str, param: str, *, plan: Plan, tokenizer: Tokenizer) -> None:
    if tokenizer.surely_exceeds(text, plan.target.context_length):
        message = f"{param}: {len(text)} characters cannot fit in the context"
        raise RequestError(f"{message} of {plan.target.context_length} tokens", param=param)


def _completion_limit(asked: CompletionRequest, num_prompt_tokens: int, plan: Plan) -> int:
    room = _room("prompt", num_prompt_tokens, plan)
    if asked.max_tokens is None:
        return min(COMPLETION_MAX_TOKENS, room)
    return _fitting(asked.max_tokens, "max_tokens", room, num_prompt_tokens, plan)


def _chat_limit(asked: ChatRequest, num_prompt_tokens: int, plan: Plan) -> int:
    room = _room("messages", num_prompt_tokens, plan)
    if asked.max_completion_tokens is not None:
        limit, param = asked.max_completion_tokens, "max_completion_tokens"
        return _fitting(limit, param, room, num_prompt_tokens, plan)
    if asked.max_tokens is not None:
        return _fitting(asked.max_tokens, "max_tokens", room, num_prompt_tokens, plan)
    return room


def _room(param: str, num_prompt_tokens: int, plan: Plan) -> int:
    room = plan.target.context_length - num_prompt_tokens
    if room < 1:
        message = f"{param}: {num_prompt_tokens} tokens leave no room for an answer in the context"
        raise RequestError(f"{message} of {plan.target.context_length} tokens", param=param)
    return room


def _fitting(max_tokens: int, param: str, room: int, num_prompt_tokens: int, plan: Plan) -> int:
    if max_tokens <= room:
        return max_tokens
    message = f"{param}: {max_tokens} is more than the {room} tokens that remain of the context's"
    message = f"{message} {plan.target.context_length} after a prompt of {num_prompt_tokens}"
    raise RequestError(message, param=param)
