"""Load on the main job whose every token is known: twelve clients, and a policy that flips."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from typing import Any

import httpx
from openai import AsyncOpenAI
from openai.types import Completion

from specserve.testing.constructed import ConstructedPair
from specserve.testing.constructed_tokenizer import token_text
from tests.main_job import PATIENCE, MainJob

ALWAYS = {"kind": "always"}
THRESHOLD = {
    "kind": "batch_threshold",
    "disable_above": 3,
    "resume_at": 2,
    "min_dwell_rounds": 1,
    "while_off": "refill",
}
NUM_CLIENTS = 12


@dataclass(frozen=True)
class Ask:
    """One request of the load, and what has to come of it."""

    prompt: Sequence[int]
    max_tokens: int
    text: str
    as_text: bool = False
    stream: bool = False
    leave_after: int | None = None
    stop: str | None = None

    @property
    def fields(self) -> dict[str, Any]:
        """In the words of the client."""
        written = "".join(token_text(token) for token in self.prompt)
        return {
            "prompt": written if self.as_text else list(self.prompt),
            "max_tokens": self.max_tokens,
            "temperature": 0,
            "stop": self.stop,
        }

    def stopped_inside(self) -> "Ask":
        """The same with a stop string that spans two tokens in the middle of the text."""
        middle = self.text.index("><", len(self.text) // 2)
        stop = self.text[middle - 2 : middle + 3]
        return replace(self, stop=stop, text=self.text[: self.text.index(stop)])


def make_ask(pair: ConstructedPair, client: int, turn: int) -> Ask:
    """Another length, way of asking and way of ending for every client and turn."""
    number = client + NUM_CLIENTS * turn
    length = 1 + number * 29 % 300  # the longest take more than one chunk of prefill
    first = pair.cycle.first_id
    prompt = [first + (number * 17 + i * i) % pair.cycle.size for i in range(length)]
    max_tokens = 20 + number * 37 % 120
    expected = pair.expected_output(prompt, max_tokens)
    ask = Ask(
        prompt=prompt,
        max_tokens=max_tokens,
        text="".join(token_text(token) for token in expected),
        as_text=number % 3 == 0,
        stream=number % 2 == 0,
    )
    match number % 5:
        case 1:
            return ask.stopped_inside()
        case 2:
            return replace(ask, stream=True, leave_after=1 + number % 7)
        case _:
            return ask


async def send(client: AsyncOpenAI, model: str, ask: Ask) -> str:
    """Ask, and hold the answer against what it has to be."""
    if not ask.stream:
        answer: Completion = await client.completions.create(model=model, **ask.fields)
        assert ask.text == answer.choices[0].text
        assert ("stop" if ask.stop else "length") == answer.choices[0].finish_reason
        assert answer.usage is not None
        assert ask.stop or ask.max_tokens == answer.usage.completion_tokens
        return "whole, stopped" if ask.stop else "whole"
    text, num_chunks, reason = "", 0, None
    async with await client.completions.create(model=model, stream=True, **ask.fields) as stream:
        async for chunk in stream:
            text += chunk.choices[0].text
            reason = chunk.choices[0].finish_reason
            num_chunks += 1
            if num_chunks == ask.leave_after:
                break
    if ask.leave_after is not None and reason is None:
        assert text
        assert ask.text.startswith(text)
        return "left"
    assert ask.text == text
    assert ("stop" if ask.stop else "length") == reason
    return "streamed, stopped" if ask.stop else "streamed"


async def load(job: MainJob, clients: Sequence[Sequence[Ask]]) -> set[str]:
    """Every client asks in turn, all clients at once. Returns the kinds of ends that were seen."""
    served = job.served
    async with AsyncOpenAI(
        base_url=f"{served.base_url}/v1", api_key=served.api_key, max_retries=0, timeout=PATIENCE
    ) as client:

        async def ask_in_turn(asks: Sequence[Ask]) -> list[str]:
            return [await send(client, served.model, ask) for ask in asks]

        ends = await asyncio.gather(*(ask_in_turn(asks) for asks in clients))
    return {end for each in ends for end in each}


async def flip(job: MainJob, stop: asyncio.Event) -> int:
    """Replace the policy over and over until told to stop; returns how often."""
    flips = 0
    async with httpx.AsyncClient(base_url=job.served.base_url, timeout=PATIENCE) as client:
        for policy in cycle((ALWAYS, {"kind": "off"}, THRESHOLD)):
            answer = await client.put("/v1/policy", json=policy)
            assert 200 == answer.status_code, answer.text
            flips += 1
            if stop.is_set():
                break
            await asyncio.sleep(0.03)
    return flips


async def load_while_flipping(
    job: MainJob, clients: Sequence[Sequence[Ask]]
) -> tuple[set[str], int]:
    stop = asyncio.Event()
    flipping = asyncio.create_task(flip(job, stop))
    try:
        ends = await load(job, clients)
    finally:
        stop.set()
        flips = await flipping
    return ends, flips
