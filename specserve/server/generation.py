"""Run the engine's requests of one answer, side by side, and end them when nobody listens."""

import asyncio
import time
from collections.abc import AsyncGenerator, Sequence
from typing import NamedTuple

from specserve.engine import Engine, GenerationChunk, GenerationRequest
from specserve.errors import EngineError
from specserve.server.metrics import Metrics


class ChoiceChunk(NamedTuple):
    """What one round added to one choice."""

    choice: int
    chunk: GenerationChunk


async def generate_choices(
    engine: Engine, requests: Sequence[GenerationRequest], metrics: Metrics
) -> AsyncGenerator[ChoiceChunk, None]:
    """Chunks of all choices, as they come.

    If one choice fails, the others are aborted and its error is raised. Closing the generator
    early aborts all.
    """
    queue: asyncio.Queue[ChoiceChunk | Exception] = asyncio.Queue()

    async def pump(choice: int, request: GenerationRequest) -> None:
        try:
            async for chunk in _checked_chunks(engine, request, metrics):
                queue.put_nowait(ChoiceChunk(choice, chunk))
        except Exception as error:  # noqa: BLE001  # raised again where the queue is read
            queue.put_nowait(error)

    pumps = [asyncio.create_task(pump(choice, request)) for choice, request in enumerate(requests)]
    num_unfinished = len(requests)
    try:
        while num_unfinished:
            item = await queue.get()
            if isinstance(item, Exception):
                raise item
            num_unfinished -= item.chunk.finish_reason is not None
            yield item
    finally:
        for task in pumps:
            task.cancel()
        await asyncio.gather(*pumps, return_exceptions=True)


async def _checked_chunks(
    engine: Engine, request: GenerationRequest, metrics: Metrics
) -> AsyncGenerator[GenerationChunk, None]:
    """The engine's chunks, timed; the request is aborted unless it came to its end."""
    finished = False
    num_tokens = 0
    last = time.perf_counter()
    try:
        async for chunk in engine.generate(request):
            now = time.perf_counter()
            if chunk.token_ids:
                metrics.observe_tokens(len(chunk.token_ids), now - last, first=num_tokens == 0)
                num_tokens += len(chunk.token_ids)
                last = now
            finished = chunk.finish_reason is not None
            yield chunk
        if not finished:
            raise EngineError(f"request {request.request_id} ended without a finish reason")
    finally:
        if not finished:
            await engine.abort(request.request_id)
