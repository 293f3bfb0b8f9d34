import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import aclosing
from dataclasses import replace
from typing import Any

import pytest

from specserve.engine import GenerationChunk, GenerationRequest, RequestCounters, Sampling
from specserve.errors import EngineError, RequestError
from specserve.server.generation import generate_choices
from specserve.server.metrics import Metrics
from specserve.testing.script import play_back
from specserve.testing.scripted import ScriptedEngine
from tests.server.live import LETTERS, make_engine

CHUNK = GenerationChunk(
    request_id="r-0",
    token_ids=(1,),
    text="a",
    logprobs=(),
    finish_reason=None,
    counters=RequestCounters(drafted=0, accepted=0, verify_rounds=0, plain_steps=1, emitted=1),
)
GREEDY = Sampling(temperature=0.0, top_p=1.0, top_k=None, min_p=0.0, seed=0, logit_bias={})


def requests(count: int, *, max_tokens: int = 6) -> list[GenerationRequest]:
    one = GenerationRequest(
        request_id="",
        prompt_token_ids=(1,),
        max_tokens=max_tokens,
        sampling=GREEDY,
        stop=(),
        stop_token_ids=(),
        top_logprobs=None,
        speculation=True,
        ignore_eos=False,
    )
    return [replace(one, request_id=f"r-{i}", prompt_token_ids=(i,)) for i in range(count)]


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 10))


def test_choices_come_side_by_side_and_each_in_order() -> None:
    async def main() -> None:
        engine = make_engine(round_seconds=0.01)
        texts, order = ["", ""], []
        async for choice, chunk in generate_choices(engine, requests(2), Metrics()):
            texts[choice] += chunk.text
            order.append(choice)

        assert ["abcdef", "bcdefg"] == texts
        assert [0, 1, 0, 1] == order

    run(main)


def test_closing_early_aborts_every_choice() -> None:
    async def main() -> None:
        engine = make_engine(round_seconds=0.01)
        chunks = generate_choices(engine, requests(3, max_tokens=400), Metrics())
        async with aclosing(chunks):
            await anext(chunks)

        assert ["r-0", "r-1", "r-2"] == sorted(engine.aborted)
        assert 0 == (await engine.stats()).running

    run(main)


def test_one_refused_choice_aborts_the_others() -> None:
    async def main() -> None:
        engine = make_engine(slots=1, max_queued=0, round_seconds=0.01)
        with pytest.raises(RequestError, match="queue full"):
            async for _ in generate_choices(engine, requests(2, max_tokens=400), Metrics()):
                pass

        assert ["r-0"] == engine.aborted

    run(main)


def test_a_dead_engine_ends_the_answer() -> None:
    async def main() -> None:
        engine = make_engine(round_seconds=0.01)
        chunks = generate_choices(engine, requests(2, max_tokens=400), Metrics())
        await anext(chunks)
        engine.die("killed")
        with pytest.raises(EngineError, match="killed"):
            async for _ in chunks:
                pass

    run(main)


def test_an_engine_that_forgets_the_finish_reason_is_found_out() -> None:
    class Forgetful(ScriptedEngine):
        async def generate(self, request: GenerationRequest) -> AsyncIterator[GenerationChunk]:
            async for chunk in super().generate(request):
                if chunk.finish_reason is None:
                    yield chunk

    async def main() -> None:
        engine = Forgetful(play_back([97]), decode=lambda ids: "x" * len(ids))
        with pytest.raises(EngineError, match="r-0 ended without a finish reason"):
            async for _ in generate_choices(engine, requests(1), Metrics()):
                pass

    run(main)


def test_an_engine_whose_iterator_ignores_cancellation_is_told_to_abort() -> None:
    """The protocol promises an AsyncIterator; only generators notice that nobody reads them."""

    class Endless:
        def __aiter__(self) -> "Endless":
            return self

        async def __anext__(self) -> GenerationChunk:
            await asyncio.sleep(0)
            return CHUNK

    class Deaf(ScriptedEngine):
        def generate(self, request: GenerationRequest) -> AsyncIterator[GenerationChunk]:
            return Endless()

        async def abort(self, request_id: str) -> None:
            self.aborted.append(request_id)

    async def main() -> None:
        engine = Deaf(LETTERS, decode=lambda ids: "")
        chunks = generate_choices(engine, requests(1), Metrics())
        async with aclosing(chunks):
            await anext(chunks)

        assert ["r-0"] == engine.aborted

    run(main)


def test_times_are_shared_by_the_tokens_of_a_round() -> None:
    """F06: rounds of 4 tokens, 40 ms apart, are 10 ms a token."""
    seen: list[tuple[int, float, bool]] = []

    class Recording(Metrics):
        def observe_tokens(self, num_tokens: int, seconds: float, *, first: bool) -> None:
            seen.append((num_tokens, seconds, first))

    async def main() -> None:
        engine = make_engine(play_back(*[[97, 98, 99, 100]] * 5), round_seconds=0.04)
        asked = requests(1, max_tokens=20)
        async for _ in generate_choices(engine, asked, Recording()):
            pass

        assert [(4, True)] + [(4, False)] * 4 == [(count, first) for count, _, first in seen]
        assert all(0.04 <= seconds for _, seconds, _ in seen[1:])

    run(main)


def test_no_choice_waits_for_a_slow_reader() -> None:
    async def main() -> None:
        engine = make_engine(LETTERS)
        chunks = generate_choices(engine, requests(1, max_tokens=30), Metrics())
        async with aclosing(chunks):
            await anext(chunks)
            await asyncio.sleep(0.05)

            assert 30 == (await engine.stats()).emitted

    run(main)
