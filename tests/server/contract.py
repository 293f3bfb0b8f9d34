"""What any specserve server must do, seen from outside: one list of checks for every engine.

Each check gets a `Served`, and raises AssertionError if the server breaks a promise. The model
behind it must know how to go on for 40 tokens without an end of sequence.
"""

import asyncio
import http.client
import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass
from functools import cached_property
from typing import Any
from urllib.parse import urlsplit

import pytest
from openai import AsyncOpenAI, BadRequestError, NotFoundError, OpenAI
from openai.types import Completion

PROMPT = "def read(path):"
BRIEF: list[Any] = [{"role": "user", "content": "Say something."}]


@dataclass(frozen=True)
class Served:
    """A server that is ready, and what it is known to serve."""

    base_url: str
    model: str
    context_length: int
    api_key: str = "none"

    @cached_property
    def client(self) -> OpenAI:
        url = f"{self.base_url}/v1"
        return OpenAI(base_url=url, api_key=self.api_key, max_retries=0, timeout=60)

    def complete(self, **fields: Any) -> Completion:  # noqa: ANN401
        """Greedy, 24 tokens, unless told otherwise. Fields of our own go in `extra_body`."""
        defaults = {"prompt": PROMPT, "max_tokens": 24, "temperature": 0}
        answer: Completion = self.client.completions.create(
            model=self.model, **{**defaults, **fields}
        )
        return answer

    def request(self, method: str, path: str, body: object = None) -> tuple[int, bytes]:
        parts = urlsplit(self.base_url)
        connection = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=60)
        headers = {"authorization": f"Bearer {self.api_key}"}
        try:
            content = None if body is None else json.dumps(body).encode()
            connection.request(method, path, content, headers)
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def stats(self) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.request("GET", "/server_info")[1])["stats"]
        return found

    def wait_until(self, condition: Callable[[dict[str, Any]], bool]) -> None:
        deadline = time.monotonic() + 30
        while not condition(stats := self.stats()):
            if time.monotonic() > deadline:
                raise AssertionError(f"still not so: {stats}")
            time.sleep(0.02)


def record(answer: Any) -> dict[str, Any]:  # noqa: ANN401
    """Our extension field, as the official client hands it on."""
    found: dict[str, Any] = answer.model_extra["specserve"]
    return found


def the_model_is_listed(served: Served) -> None:
    assert [served.model] == [model.id for model in served.client.models.list()]
    assert served.model == served.client.models.retrieve(served.model).id


def usage_counts_tokens(served: Served) -> None:
    answer = served.complete(extra_body={"ignore_eos": True})

    assert answer.usage is not None
    assert 24 == answer.usage.completion_tokens
    assert answer.usage.total_tokens == answer.usage.prompt_tokens + 24
    assert "length" == answer.choices[0].finish_reason


def a_stream_says_what_the_whole_answer_says(served: Served) -> None:
    whole = served.complete()
    chunks = list(
        served.client.completions.create(
            model=served.model,
            prompt=PROMPT,
            max_tokens=24,
            temperature=0,
            stream=True,
            stream_options={"include_usage": True},
        )
    )
    choices = [choice for chunk in chunks for choice in chunk.choices]

    assert whole.choices[0].text == "".join(choice.text for choice in choices)
    assert whole.choices[0].finish_reason == choices[-1].finish_reason
    assert all(choice.finish_reason is None for choice in choices[:-1])
    assert whole.usage == chunks[-1].usage
    assert [None] * (len(chunks) - 1) == [chunk.usage for chunk in chunks[:-1]]


def a_chat_stream_says_what_the_whole_chat_says(served: Served) -> None:
    fields: dict[str, Any] = {
        "model": served.model,
        "messages": BRIEF,
        "max_completion_tokens": 24,
        "temperature": 0,
    }
    whole = served.client.chat.completions.create(**fields)
    chunks = list(served.client.chat.completions.create(**fields, stream=True))
    deltas = [chunk.choices[0].delta for chunk in chunks]

    assert whole.choices[0].message.content == "".join(delta.content or "" for delta in deltas)
    assert "assistant" == whole.choices[0].message.role == deltas[0].role
    assert whole.choices[0].finish_reason == chunks[-1].choices[0].finish_reason


def greedy_choices_are_identical(served: Served) -> None:
    first, second = served.complete(n=2).choices

    assert first.text == second.text
    assert [0, 1] == [first.index, second.index]


def a_seed_fixes_the_sample(served: Served) -> None:
    first, second = (served.complete(temperature=1, seed=7, n=2) for _ in range(2))

    assert [each.text for each in first.choices] == [each.text for each in second.choices]


def speculation_changes_counters_and_not_text(served: Served) -> None:
    """One request opts out while another, at the same time, does not."""
    with ThreadPoolExecutor(2) as pool:
        plain, speculative = pool.map(
            lambda asked: served.complete(extra_body={"speculation": asked}), (False, True)
        )

    assert 0 == record(plain)["drafted"]
    assert record(plain)["plain_steps"] > 0
    assert record(plain)["acceptance_length"] is None
    assert record(speculative)["drafted"] > 0
    assert record(speculative)["acceptance_length"] >= 1
    assert plain.choices[0].text == speculative.choices[0].text


def a_stop_string_ends_the_text_before_it(served: Served) -> None:
    text = served.complete().choices[0].text
    stop = text[len(text) // 2 :][:3]
    stopped = served.complete(stop=stop)

    assert text[: text.index(stop)] == stopped.choices[0].text
    assert "stop" == stopped.choices[0].finish_reason


def a_stop_string_is_never_streamed(served: Served) -> None:
    text = served.complete().choices[0].text
    stop = text[len(text) // 2 :][:3]
    stream = served.client.completions.create(
        model=served.model, prompt=PROMPT, max_tokens=24, temperature=0, stream=True, stop=[stop]
    )

    assert text[: text.index(stop)] == "".join(chunk.choices[0].text for chunk in stream)


def every_token_has_its_logprob(served: Served) -> None:
    answer = served.complete(logprobs=3)
    logprobs = answer.choices[0].logprobs

    assert answer.usage is not None
    assert logprobs is not None
    counts = {
        len(logprobs.tokens or ()),
        len(logprobs.token_logprobs or ()),
        len(logprobs.top_logprobs or ()),
        len(logprobs.text_offset or ()),
    }
    assert {answer.usage.completion_tokens} == counts
    assert all(value <= 0 for value in logprobs.token_logprobs or ())


def every_chat_token_has_its_logprob(served: Served) -> None:
    answer = served.client.chat.completions.create(
        model=served.model,
        messages=BRIEF,
        max_tokens=12,
        temperature=0,
        logprobs=True,
        top_logprobs=2,
    )
    logprobs = answer.choices[0].logprobs

    assert answer.usage is not None
    assert logprobs is not None
    assert logprobs.content is not None
    assert answer.usage.completion_tokens == len(logprobs.content)
    assert {2} == {len(entry.top_logprobs) for entry in logprobs.content}


def prompts_in_a_list_are_answered_in_order(served: Served) -> None:
    prompts = ["import os", "class Stack:"]
    together = served.complete(prompt=prompts)
    alone = [served.complete(prompt=prompt) for prompt in prompts]

    assert [answer.choices[0].text for answer in alone] == [c.text for c in together.choices]
    assert together.usage is not None
    assert together.usage.prompt_tokens == sum(
        answer.usage.prompt_tokens for answer in alone if answer.usage
    )


def a_prompt_may_be_token_ids(served: Served) -> None:
    one, two = served.complete(prompt=[10, 11]), served.complete(prompt=[[10, 11], [12]])

    assert one.choices[0].text == two.choices[0].text
    assert one.usage is not None
    assert 2 == one.usage.prompt_tokens


def an_echo_precedes_the_text(served: Served) -> None:
    plain, echoed = served.complete(), served.complete(echo=True)

    assert PROMPT + plain.choices[0].text == echoed.choices[0].text


def many_clients_get_what_they_get_alone(served: Served) -> None:
    prompts = [f"x{i} = {i}" for i in range(6)]

    async def all_at_once() -> list[str]:
        async with AsyncOpenAI(
            base_url=f"{served.base_url}/v1", api_key=served.api_key, max_retries=0, timeout=60
        ) as client:
            answers = await asyncio.gather(
                *(
                    client.completions.create(
                        model=served.model, prompt=prompt, max_tokens=16, temperature=0
                    )
                    for prompt in prompts
                )
            )
        return [answer.choices[0].text for answer in answers]

    alone = [served.complete(prompt=prompt, max_tokens=16).choices[0].text for prompt in prompts]
    assert alone == asyncio.run(all_at_once())


def another_model_is_not_found(served: Served) -> None:
    with pytest.raises(NotFoundError) as caught:
        served.client.completions.create(model="gpt-4", prompt=PROMPT)
    assert "model_not_found" == caught.value.code
    assert "model" == caught.value.param


def a_prompt_beyond_the_context_is_refused(served: Served) -> None:
    with pytest.raises(BadRequestError, match="context") as caught:
        served.complete(prompt=[10] * (served.context_length + 1))
    assert "prompt" == caught.value.param


def a_limit_beyond_the_context_is_refused(served: Served) -> None:
    with pytest.raises(BadRequestError, match="context") as caught:
        served.complete(max_tokens=served.context_length)
    assert "max_tokens" == caught.value.param


def structured_output_is_refused_and_others_go_on(served: Served) -> None:
    """C08: one request that can't be served never harms another."""
    with ThreadPoolExecutor(1) as pool:
        other = pool.submit(served.complete)
        with pytest.raises(BadRequestError) as caught:
            served.client.chat.completions.create(
                model=served.model, messages=BRIEF, response_format={"type": "json_object"}
            )

    assert "response_format" == caught.value.param
    assert other.result().choices[0].text
    assert 200 == served.request("GET", "/health")[0]


def totals_grow_by_what_was_answered(served: Served) -> None:
    before = served.stats()
    answer = served.complete()
    after = served.stats()

    assert answer.usage is not None
    assert answer.usage.completion_tokens == after["emitted"] - before["emitted"]
    for name in ("drafted", "accepted", "verify_rounds", "plain_steps"):
        assert record(answer)[name] == after[name] - before[name]


def a_client_that_leaves_a_stream_frees_its_slot(served: Served) -> None:
    stream = served.client.completions.create(
        model=served.model,
        prompt=PROMPT,
        max_tokens=served.context_length - 64,
        stream=True,
        extra_body={"ignore_eos": True},
    )
    next(iter(stream))
    stream.response.close()

    served.wait_until(lambda stats: stats["running"] == stats["queued"] == 0)
    emitted = served.stats()["emitted"]
    time.sleep(0.1)
    assert emitted == served.stats()["emitted"]


def a_client_that_leaves_before_the_answer_frees_its_slot(served: Served) -> None:
    before = served.stats()["emitted"]
    body = {
        "model": served.model,
        "prompt": PROMPT,
        "max_tokens": served.context_length - 64,
        "ignore_eos": True,
    }
    parts = urlsplit(served.base_url)
    with socket.create_connection((parts.hostname, parts.port), timeout=30) as raw:
        content = json.dumps(body).encode()
        head = (
            f"POST /v1/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {served.api_key}"
            f"\r\ncontent-length: {len(content)}\r\n\r\n"
        )
        raw.sendall(head.encode() + content)
        served.wait_until(lambda stats: stats["emitted"] > before)
        with suppress(OSError):
            raw.shutdown(socket.SHUT_RDWR)

    served.wait_until(lambda stats: stats["running"] == stats["queued"] == 0)
    assert served.stats()["emitted"] - before < body["max_tokens"]


def the_policy_can_be_replaced(served: Served) -> None:
    before = json.loads(served.request("GET", "/v1/policy")[1])["policy"]
    try:
        status, _ = served.request("PUT", "/v1/policy", {"kind": "off"})
        answer = served.complete()
    finally:
        served.request("PUT", "/v1/policy", before)

    assert 200 == status
    assert 0 == record(answer)["drafted"]
    assert before == json.loads(served.request("GET", "/v1/policy")[1])["policy"]


CHECKS: tuple[Callable[[Served], None], ...] = (
    the_model_is_listed,
    usage_counts_tokens,
    a_stream_says_what_the_whole_answer_says,
    a_chat_stream_says_what_the_whole_chat_says,
    greedy_choices_are_identical,
    a_seed_fixes_the_sample,
    speculation_changes_counters_and_not_text,
    a_stop_string_ends_the_text_before_it,
    a_stop_string_is_never_streamed,
    every_token_has_its_logprob,
    every_chat_token_has_its_logprob,
    prompts_in_a_list_are_answered_in_order,
    a_prompt_may_be_token_ids,
    an_echo_precedes_the_text,
    many_clients_get_what_they_get_alone,
    another_model_is_not_found,
    a_prompt_beyond_the_context_is_refused,
    a_limit_beyond_the_context_is_refused,
    structured_output_is_refused_and_others_go_on,
    totals_grow_by_what_was_answered,
    a_client_that_leaves_a_stream_frees_its_slot,
    a_client_that_leaves_before_the_answer_frees_its_slot,
    the_policy_can_be_replaced,
)
