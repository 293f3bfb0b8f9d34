"""Requests end where they should while speculation goes on and off under them."""

import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Literal

import pytest

from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy, OffPolicy, WhileOff
from specserve.engine import GenerationChunk, GenerationRequest
from specserve.testing.loops import Generated, Sizes, Speculation, join_chunks, open_loop
from specserve.torch_engine.loop import Loop
from tests.torch_engine.greedy_scenes import (
    Expected,
    Scene,
    Worth,
    num_cut_off,
    received,
    write_scene,
)

Kind = Literal["overlap", "sync"]
NUM_STEPS = 4
ON, OFF = AlwaysPolicy(kind="always"), OffPolicy(kind="off")

all_ways_to_wait = pytest.mark.parametrize("while_off", ["warm", "skip", "refill"])
both_schedulers = pytest.mark.parametrize("kind", ["sync", "overlap"])
chain_and_tree = pytest.mark.parametrize("topk", [1, 3])


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[Worth, Scene]:
    """A draft that is always right, so that ends lie within runs, and one that often is."""
    folder = tmp_path_factory.mktemp("scenes")
    worths: tuple[Worth, ...] = ("perfect", "good")
    return {worth: write_scene(folder / worth, worth) for worth in worths}


def open_scene(scene: Scene, while_off: WhileOff, *, topk: int, kind: Kind) -> Loop:
    """With a policy that speculates for one or two requests, and not for more."""
    return open_loop(
        scene.target_folder,
        Speculation(
            draft_folder=scene.draft_folder, num_steps=NUM_STEPS, topk=topk, while_off=while_off
        ),
        policy=BatchThresholdPolicy(
            kind="batch_threshold",
            disable_above=2,
            resume_at=2,
            min_dwell_rounds=0,
            while_off=while_off,
        ),
        sizes=Sizes(kind=kind, max_running_requests=4, prefill_chunk_tokens=32),
        eos_token_ids=scene.eos_token_ids,
    )


def load(scene: Scene) -> tuple[list[GenerationRequest], tuple[Expected, ...]]:
    """The scene's requests twice over, in a new order each time, and their answers."""
    chance = random.Random(0)
    requests, expected = list[GenerationRequest](), list[Expected]()
    for number in range(2):
        pairs = list(zip(scene.requests, scene.expected, strict=True))
        for request, answer in chance.sample(pairs, len(pairs)):
            requests.append(replace(request, request_id=f"{number}-{request.request_id}"))
            expected.append(answer)
    return requests, tuple(expected)


def check_that_ends_were_tried(loop: Loop, outputs: Sequence[Generated], num_switches: int) -> None:
    """Much switching, also in the midst of requests, and ends that were overrun by a run."""
    assert num_switches <= loop.stats().policy.switches
    assert any(one.counters.plain_steps and one.counters.verify_rounds for one in outputs)
    assert any(one.finish_reason == "stop" and num_cut_off(one) for one in outputs)


def check_that_all_came_back(loop: Loop) -> None:
    stats = loop.stats()
    assert (0, 0) == (stats.running, stats.queued)
    assert stats.total_slots == stats.free_slots


def serve(
    loop: Loop,
    requests: Sequence[GenerationRequest],
    before_step: Callable[[int, deque[GenerationRequest]], None],
) -> list[Generated]:
    """Step until all are served; `before_step` is told the step, and submits from what waits."""
    waiting = deque(requests)
    chunks: dict[str, list[GenerationChunk]] = {one.request_id: [] for one in requests}
    step = 0
    while waiting or loop.has_work:
        before_step(step, waiting)
        for chunk in loop.step():
            chunks[chunk.request_id].append(chunk)
        step += 1
    return [join_chunks(chunks[one.request_id]) for one in requests]


@all_ways_to_wait
@both_schedulers
@chain_and_tree
@pytest.mark.parametrize("worth", ["perfect", "good"])
def test_load_that_switches_speculation_moves_no_end(
    scenes: dict[Worth, Scene], worth: Worth, topk: int, kind: Kind, while_off: WhileOff
) -> None:
    """Three requests come at a time, each time that one has been alone for a while."""
    scene = scenes[worth]
    requests, expected = load(scene)
    loop = open_scene(scene, while_off, topk=topk, kind=kind)

    def submit_a_wave(step: int, waiting: deque[GenerationRequest]) -> None:
        if step % 3 == 0 and waiting and loop.stats().running <= 1:
            for _ in range(min(3, len(waiting))):
                loop.submit(waiting.popleft())

    outputs = serve(loop, requests, submit_a_wave)
    loop.close()

    assert expected == received(outputs)
    check_that_ends_were_tried(loop, outputs, num_switches=4)
    check_that_all_came_back(loop)
    if worth == "perfect":
        assert NUM_STEPS + 1 == loop.stats().acceptance_length


@all_ways_to_wait
@both_schedulers
@chain_and_tree
def test_an_operator_who_switches_without_pause_moves_no_end(
    scenes: dict[Worth, Scene], topk: int, kind: Kind, while_off: WhileOff
) -> None:
    """Two rounds on, one off, with as many requests as can run."""
    scene = scenes["good"]
    requests, expected = load(scene)
    loop = open_scene(scene, while_off, topk=topk, kind=kind)

    def switch(step: int, waiting: deque[GenerationRequest]) -> None:
        loop.set_policy(OFF if step % 3 == 2 else ON)
        while waiting:
            loop.submit(waiting.popleft())

    outputs = serve(loop, requests, switch)
    loop.close()

    assert expected == received(outputs)
    check_that_ends_were_tried(loop, outputs, num_switches=15)
    check_that_all_came_back(loop)
