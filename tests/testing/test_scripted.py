import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import replace
from typing import Any

import pytest

from specserve.config.policy import (
    BatchThresholdPolicy,
    DepthSchedulePolicy,
    DepthStep,
    OffPolicy,
)
from specserve.engine import (
    Engine,
    EngineStats,
    GenerationChunk,
    GenerationRequest,
    Mode,
    RequestCounters,
    Sampling,
)
from specserve.errors import EngineError, RequestError
from specserve.testing.script import Script, count_up, play_back
from specserve.testing.scripted import ScriptedEngine

GREEDY = Sampling(temperature=0.0, top_p=1.0, top_k=None, min_p=0.0, seed=0, logit_bias={})
REQUEST = GenerationRequest(
    request_id="r",
    prompt_token_ids=(1, 2),
    max_tokens=100,
    sampling=GREEDY,
    stop=(),
    stop_token_ids=(),
    top_logprobs=None,
    speculation=True,
    ignore_eos=False,
)
EOS = 0
ENDLESS = count_up(start=ord("a"), stop=ord("z") + 1, run_length=3)


def letters(token_ids: Sequence[int]) -> str:
    return "".join(map(chr, token_ids))


def make_engine(script: Script, **options: Any) -> ScriptedEngine:  # noqa: ANN401
    return ScriptedEngine(script, decode=letters, eos_token_ids=(EOS,), **options)


async def play(engine: Engine, request: GenerationRequest = REQUEST) -> list[GenerationChunk]:
    return [chunk async for chunk in engine.generate(request)]


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    asyncio.run(asyncio.wait_for(main(), 10))


def ids(chunks: Sequence[GenerationChunk]) -> list[int]:
    return [token_id for chunk in chunks for token_id in chunk.token_ids]


def text(chunks: Sequence[GenerationChunk]) -> str:
    return "".join(chunk.text for chunk in chunks)


def test_a_run_is_a_verify_round_with_a_bonus_token() -> None:
    engine = make_engine(play_back([97, 98, 99], [100]))
    chunks = asyncio.run(play(engine))

    assert [(97, 98, 99), (100,), ()] == [chunk.token_ids for chunk in chunks]
    assert [None, None, "stop"] == [chunk.finish_reason for chunk in chunks]
    assert (
        RequestCounters(drafted=6, accepted=2, verify_rounds=2, plain_steps=0, emitted=4)
        == chunks[-1].counters
    )


def test_totals_are_the_sum_of_the_requests() -> None:
    async def main() -> None:
        engine = make_engine(play_back([97, 98, 99], [100]))
        await play(engine)
        await play(engine, replace(REQUEST, request_id="s", speculation=False))
        stats = await engine.stats()

        assert (6, 2, 2, 4, 8) == (
            stats.drafted,
            stats.accepted,
            stats.verify_rounds,
            stats.plain_steps,
            stats.emitted,
        )
        assert (1, 1, 0) == stats.accepted_by_position
        assert 2.0 == stats.acceptance_length
        assert 8 == sum(stats.emitted_by_mode.values())
        assert 4 == stats.prefill_tokens

    run(main)


def test_a_plain_request_gets_the_same_tokens_one_a_step() -> None:
    engine = make_engine(play_back([97, 98, 99], [100]))
    chunks = asyncio.run(play(engine, replace(REQUEST, speculation=False)))

    assert [97, 98, 99, 100] == ids(chunks)
    assert 1 == max(len(chunk.token_ids) for chunk in chunks)
    assert (0, 4) == (chunks[-1].counters.drafted, chunks[-1].counters.plain_steps)


@pytest.mark.parametrize("max_tokens", range(1, 7))
def test_the_length_cap_cuts_inside_a_run(max_tokens: int) -> None:
    engine = make_engine(play_back([97, 98, 99], [100, 101, 102]))
    chunks = asyncio.run(play(engine, replace(REQUEST, max_tokens=max_tokens)))

    assert max_tokens == len(ids(chunks)) == chunks[-1].counters.emitted
    assert "length" == chunks[-1].finish_reason


def test_an_end_of_sequence_counts_and_is_not_shown() -> None:
    chunks = asyncio.run(play(make_engine(play_back([97, EOS, 98]))))

    assert [97, EOS] == ids(chunks)
    assert "a" == text(chunks)
    assert "stop" == chunks[-1].finish_reason


def test_an_end_of_sequence_is_passed_if_asked() -> None:
    engine = make_engine(play_back([97, EOS, 98]))

    assert [97, EOS, 98] == ids(asyncio.run(play(engine, replace(REQUEST, ignore_eos=True))))


def test_a_stop_string_across_runs_is_never_shown() -> None:
    engine = make_engine(ENDLESS)
    chunks = asyncio.run(play(engine, replace(REQUEST, prompt_token_ids=(0,), stop=("cde",))))

    assert "ab" == text(chunks)
    assert "stop" == chunks[-1].finish_reason


def test_every_token_has_a_logprob_if_asked() -> None:
    request = replace(REQUEST, top_logprobs=2, max_tokens=7)
    chunks = asyncio.run(play(make_engine(ENDLESS), request))

    assert ids(chunks) == [entry.token_id for chunk in chunks for entry in chunk.logprobs]


def test_abort_ends_with_its_reason_and_frees_the_slot() -> None:
    async def main() -> None:
        engine = make_engine(ENDLESS, round_seconds=0.01)
        playing = asyncio.create_task(play(engine, replace(REQUEST, max_tokens=10**6)))
        await asyncio.sleep(0.05)
        assert 1 == (await engine.stats()).running
        await engine.abort("r")
        await engine.abort("unknown")

        assert "abort" == (await playing)[-1].finish_reason
        assert ["r"] == engine.aborted
        assert 0 == (await engine.stats()).running

    run(main)


def test_a_request_that_nobody_reads_any_more_is_aborted() -> None:
    async def main() -> None:
        engine = make_engine(ENDLESS, round_seconds=0.01)
        playing = asyncio.create_task(play(engine, replace(REQUEST, max_tokens=10**6)))
        await asyncio.sleep(0.05)
        playing.cancel()
        await asyncio.gather(playing, return_exceptions=True)

        assert ["r"] == engine.aborted
        assert 0 == (await engine.stats()).running

    run(main)


def test_close_ends_what_runs_and_is_safe_twice() -> None:
    async def main() -> None:
        engine = make_engine(ENDLESS, round_seconds=0.01)
        playing = asyncio.create_task(play(engine, replace(REQUEST, max_tokens=10**6)))
        await asyncio.sleep(0.05)
        await engine.close()
        await engine.close()

        assert "abort" == (await playing)[-1].finish_reason
        assert engine.closed

    run(main)


def test_a_dead_engine_answers_nobody() -> None:
    async def main() -> None:
        engine = make_engine(ENDLESS, round_seconds=0.01)
        playing = asyncio.create_task(play(engine, replace(REQUEST, max_tokens=10**6)))
        await asyncio.sleep(0.05)
        engine.die("killed by signal 9")
        for answer in (playing, engine.stats(), play(engine)):
            with pytest.raises(EngineError, match="killed by signal 9"):
                await answer

    run(main)


def test_a_script_may_refuse_a_request() -> None:
    def refuse(_: GenerationRequest) -> Iterator[Sequence[int]]:
        raise RequestError("no", param="prompt")

    async def main() -> None:
        engine = make_engine(refuse)
        with pytest.raises(RequestError, match="no"):
            await play(engine)
        assert 0 == (await engine.stats()).running

    run(main)


def test_a_run_longer_than_the_draft_can_make_is_an_error() -> None:
    with pytest.raises(EngineError, match="2 steps cannot yield a run of 4"):
        asyncio.run(play(make_engine(play_back([1, 2, 3, 4]), num_steps=2)))


def test_the_policy_chooses_the_mode() -> None:
    async def main() -> None:
        engine = make_engine(ENDLESS)
        state = await engine.set_policy(OffPolicy(kind="off"))
        chunks = await play(engine, replace(REQUEST, max_tokens=4))
        stats = await engine.stats()

        assert (Mode.PLAIN, 0, 1) == (state.mode, state.num_steps, state.switches)
        assert 0 == chunks[-1].counters.drafted
        assert 4 == stats.emitted_by_mode[Mode.PLAIN]

    run(main)


def test_a_threshold_counts_running_decodes() -> None:
    policy = BatchThresholdPolicy(
        kind="batch_threshold", disable_above=1, resume_at=1, min_dwell_rounds=0, while_off="skip"
    )

    async def main() -> None:
        engine = make_engine(ENDLESS, policy=policy, round_seconds=0.002)
        await play(engine, replace(REQUEST, max_tokens=9))
        assert 0 == (await engine.stats()).plain_steps
        both = [replace(REQUEST, request_id=name, max_tokens=9) for name in "ab"]
        await asyncio.gather(*(play(engine, request) for request in both))
        stats = await engine.stats()

        assert stats.plain_steps > 0
        assert stats.policy.switches > 0

    run(main)


def test_a_shallower_round_takes_its_part_of_the_run() -> None:
    """A run is what the deepest round would emit; a depth of 1 emits two of its tokens at most."""
    shallow = DepthSchedulePolicy(
        kind="depth_schedule",
        schedule=[DepthStep(up_to=8, num_steps=1)],
        hysteresis=0,
        min_dwell_rounds=0,
        while_off="warm",
    )

    async def main() -> tuple[list[int], EngineStats]:
        engine = make_engine(play_back([5, 6, 7, 8], [9]), policy=shallow)
        chunks = [len(chunk.token_ids) async for chunk in engine.generate(REQUEST)]
        return chunks, await engine.stats()

    chunks, stats = asyncio.run(main())

    assert [2, 2, 1, 0] == chunks
    assert (3, 2, 3) == (stats.drafted, stats.accepted, stats.verify_rounds)
    assert (2, 0, 0) == stats.accepted_by_position
