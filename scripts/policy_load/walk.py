"""A closed loop whose number of requests walks up and down, the same requests for every arm."""

import hashlib
import json
import time
from collections import deque
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, field

from engine_arms import Arm, greedy_request

from specserve.engine import GenerationChunk

LEVELS = (1, 2, 4, 8, 12, 16, 12, 8, 4, 2, 1)
LEAST_TOKENS, MOST_TOKENS = 64, 96


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """A request that starts as soon as fewer than `level` others run."""

    level: int
    prompt: tuple[int, ...]
    num_tokens: int


@dataclass(slots=True, kw_only=True)
class LevelTotals:
    """What happened while the load was at a level, or on its way down to it."""

    seconds: float = 0.0
    tokens: int = 0
    steps_by_depth: dict[int, int] = field(default_factory=dict)


def make_walk(prompts: Sequence[tuple[int, ...]], requests_per_place: int) -> list[Item]:
    """`requests_per_place` requests for each of a level's places, but at least two.

    Their lengths differ, so that they do not all end together.
    """
    return list(_items(prompts, requests_per_place))


def _items(prompts: Sequence[tuple[int, ...]], requests_per_place: int) -> Iterator[Item]:
    index = 0
    for level in LEVELS:
        for _ in range(max(2, level * requests_per_place)):
            spread = MOST_TOKENS - LEAST_TOKENS + 1
            yield Item(
                level=level,
                prompt=prompts[index % len(prompts)],
                num_tokens=LEAST_TOKENS + index * 13 % spread,
            )
            index += 1


def run_walk(arm: Arm, items: Sequence[Item]) -> dict[str, object]:
    """Serve all items; seconds, tokens and depths by level, switches, and a digest per output."""
    loop, waiting = arm.loop, deque(enumerate(items))
    outputs: list[list[int]] = [[] for _ in items]
    levels: dict[int, LevelTotals] = {level: LevelTotals() for level in LEVELS}
    before, num_running, level = loop.stats(), 0, LEVELS[0]
    while waiting or num_running:
        began = time.perf_counter()
        while waiting and num_running < waiting[0][1].level:
            index, item = waiting.popleft()
            loop.submit(greedy_request(str(index), item.prompt, item.num_tokens))
            num_running, level = num_running + 1, item.level
        chunks = loop.step()
        num_running -= _take(chunks, outputs)
        totals = levels[level]
        totals.seconds += time.perf_counter() - began
        totals.tokens += sum(len(chunk.token_ids) for chunk in chunks)
        depth = loop.policy_state().num_steps
        totals.steps_by_depth[depth] = totals.steps_by_depth.get(depth, 0) + 1
    after = loop.stats()
    seconds = sum(one.seconds for one in levels.values())
    return {
        "rate": sum(one.tokens for one in levels.values()) / seconds,
        "seconds": seconds,
        "levels": {level: asdict(one) for level, one in levels.items()},
        "switches": after.policy.switches - before.policy.switches,
        "draft_calls": after.draft_calls - before.draft_calls,
        "draft_upkeep_calls": after.draft_upkeep_calls - before.draft_upkeep_calls,
        "drafted": after.drafted - before.drafted,
        "accepted": after.accepted - before.accepted,
        "verify_rounds": after.verify_rounds - before.verify_rounds,
        "plain_steps": after.plain_steps - before.plain_steps,
        "outputs": [_digest(tokens) for tokens in outputs],
    }


def _take(chunks: Sequence[GenerationChunk], outputs: list[list[int]]) -> int:
    """Add chunks to their outputs; how many of those are complete."""
    for chunk in chunks:
        outputs[int(chunk.request_id)] += chunk.token_ids
    return sum(chunk.finish_reason is not None for chunk in chunks)


def _digest(tokens: Sequence[int]) -> str:
    return hashlib.sha256(json.dumps(tokens).encode()).hexdigest()[:16]
