"""POST /v1/completions and /v1/chat/completions."""

import time
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import aclosing
from typing import Any, TypeVar

from fastapi import APIRouter, Request, Response

from specserve.server.answer import AnswerFormat, answer_events, whole_answer
from specserve.server.body import read_json_object
from specserve.server.chat_answer import ChatAnswer
from specserve.server.completion_answer import CompletionAnswer
from specserve.server.context import Context
from specserve.server.error_response import json_response
from specserve.server.generation import generate_choices
from specserve.server.parse import parse_request
from specserve.server.prepare import Job, prepare_chat, prepare_completion
from specserve.server.schemas import ChatRequest, CompletionRequest, GenerationFields
from specserve.server.state import Serving
from specserve.server.stream import EventStream, until_client_leaves

Begin = Callable[[Serving], Coroutine[Any, Any, tuple[Job, AnswerFormat]]]


def generation_routes(context: Context) -> APIRouter:
    """The endpoints that generate."""
    router = APIRouter()

    @router.post("/v1/completions")
    async def completions(request: Request) -> Response:
        asked = await _read(request, CompletionRequest, context)

        async def begin(serving: Serving) -> tuple[Job, AnswerFormat]:
            return await _begin_completion(request.state.request_id, asked, serving, context)

        return await _answer(request, asked, begin, context)

    @router.post("/v1/chat/completions")
    async def chat_completions(request: Request) -> Response:
        asked = await _read(request, ChatRequest, context)

        async def begin(serving: Serving) -> tuple[Job, AnswerFormat]:
            return await _begin_chat(request.state.request_id, asked, serving, context)

        return await _answer(request, asked, begin, context)

    return router


Asked = TypeVar("Asked", bound=GenerationFields)


async def _read(request: Request, schema: type[Asked], context: Context) -> Asked:
    context.state.serving()  # refuses early: a body sent to a server that starts is not read
    return parse_request(schema, await read_json_object(request, context.config.max_body_bytes))


async def _answer(
    request: Request, asked: GenerationFields, begin: Begin, context: Context
) -> Response:
    """Stream or whole, in flight until its end."""

    async def events() -> AsyncGenerator[bytes, None]:
        with context.state.admit() as serving:
            job, answer = await begin(serving)
            events = answer_events(
                generate_choices(serving.engine, job.requests, context.metrics),
                answer,
                num_choices=len(job.requests),
                num_prompt_tokens=job.num_prompt_tokens,
                include_usage=asked.include_usage,
            )
            async with aclosing(events):
                async for content in events:
                    yield content

    async def whole() -> object:
        with context.state.admit() as serving:
            job, answer = await begin(serving)
            return await whole_answer(
                generate_choices(serving.engine, job.requests, context.metrics),
                answer,
                num_choices=len(job.requests),
                num_prompt_tokens=job.num_prompt_tokens,
            )

    if asked.stream:
        return EventStream(events())
    return json_response(await until_client_leaves(request.receive, whole()))


async def _begin_completion(
    request_id: str, asked: CompletionRequest, serving: Serving, context: Context
) -> tuple[Job, AnswerFormat]:
    tokenizer = serving.tokenizer
    answer_id = f"cmpl-{request_id}"
    job = await prepare_completion(
        asked, request_id=answer_id, plan=context.plan, tokenizer=tokenizer
    )
    texts = [
        prompt if isinstance(prompt, str) else tokenizer.decode(prompt)
        for prompt in asked.prompt
        for _ in range(asked.n)
    ]
    answer = CompletionAnswer(
        answer_id=answer_id,
        created=int(time.time()),
        model=asked.model,
        tokenizer=tokenizer,
        echoes=texts if asked.echo else [""] * len(texts),
        with_logprobs=asked.logprobs is not None,
        include_usage=asked.include_usage,
    )
    return job, answer


async def _begin_chat(
    request_id: str, asked: ChatRequest, serving: Serving, context: Context
) -> tuple[Job, AnswerFormat]:
    answer_id = f"chatcmpl-{request_id}"
    job = await prepare_chat(
        asked, request_id=answer_id, plan=context.plan, tokenizer=serving.tokenizer
    )
    answer = ChatAnswer(
        answer_id=answer_id,
        created=int(time.time()),
        model=asked.model,
        tokenizer=serving.tokenizer,
        with_logprobs=asked.logprobs,
        include_usage=asked.include_usage,
    )
    return job, answer
