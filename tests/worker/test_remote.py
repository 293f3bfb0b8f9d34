"""The engine behind a socket: what its callers see, above all when the worker dies."""

import asyncio
import os
import signal
import sys
import time
from collections.abc import Awaitable, Callable
from pathlib import Path

import psutil
import pytest

from specserve.config.build import PhaseLimits
from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy
from specserve.engine import GenerationChunk, GenerationRequest, Mode, Sampling
from specserve.errors import ConfigError, EngineError, RequestError
from specserve.plan import Plan
from specserve.worker.events import EventLog, read_events
from specserve.worker.launch import build_worker
from specserve.worker.ledger import Ledger
from specserve.worker.remote import RemoteEngine

SCRIPTED = (sys.executable, str(Path(__file__).parent / "scripted_worker.py"))

# First prompt tokens that the scripted worker knows.
DIES, SLOW, ENDLESS, REFUSED, BREAKS, HANGS = 100, 200, 300, 400, 500, 310

Use = Callable[[RemoteEngine], Awaitable[None]]
WithEngine = Callable[..., None]


def _request(first_token: int = 1, request_id: str = "a") -> GenerationRequest:
    return GenerationRequest(
        request_id=request_id,
        prompt_token_ids=(first_token,),
        max_tokens=4,
        sampling=Sampling(temperature=0.0, top_p=1.0, top_k=None, min_p=0.0, seed=0, logit_bias={}),
        stop=(),
        stop_token_ids=(),
        top_logprobs=None,
        speculation=True,
        ignore_eos=False,
    )


async def _all(engine: RemoteEngine, request: GenerationRequest) -> list[GenerationChunk]:
    return [chunk async for chunk in engine.generate(request)]


@pytest.fixture
def with_engine(tmp_path: Path, plan: Plan, limits: PhaseLimits) -> WithEngine:
    """Run a coroutine function on a fresh engine, close it, and see that nothing is left."""

    def run(use: Use, lie: str = "none", step_limit_seconds: float = 60.0) -> None:
        async def main() -> None:
            ledger, events = Ledger(tmp_path / "ledger.jsonl"), EventLog(tmp_path / "events.jsonl")
            worker = await build_worker(
                plan,
                ledger,
                events.append,
                limits=limits,
                step_limit_seconds=step_limit_seconds,
                command=(*SCRIPTED, lie),
            )
            try:
                await asyncio.wait_for(use(worker.engine), 30)
            finally:
                await worker.engine.close()
                ledger.close()
                events.close()

        asyncio.run(main())
        assert [] == psutil.Process().children(recursive=True)

    return run


def test_chunks_come_in_order_and_only_the_last_has_a_finish_reason(
    with_engine: WithEngine,
) -> None:
    async def use(engine: RemoteEngine) -> None:
        chunks = await _all(engine, _request())

        assert (2, 3, 4, 5) == tuple(token for chunk in chunks for token in chunk.token_ids)
        assert [None, "length"] == [chunk.finish_reason for chunk in chunks]

    with_engine(use)


def test_a_request_id_may_be_used_again_but_not_twice_at_once(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        await _all(engine, _request())
        await _all(engine, _request())
        first = engine.generate(_request(ENDLESS))
        await anext(first)

        with pytest.raises(RequestError, match="'a' is running already"):
            await _all(engine, _request())

        await first.aclose()

    with_engine(use)


def test_an_id_that_was_given_up_is_free_again_once_the_worker_has_ended_it(
    with_engine: WithEngine,
) -> None:
    """Else the end of the old request would end the new one."""

    async def use(engine: RemoteEngine) -> None:
        first = engine.generate(_request(ENDLESS))
        await anext(first)
        await first.aclose()

        with pytest.raises(RequestError, match="is running already"):
            await _all(engine, _request())
        await engine.stats()  # answered after the abort

        assert "length" == (await _all(engine, _request()))[-1].finish_reason

    with_engine(use)


def test_an_abort_ends_the_iterator_with_abort(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        chunks = engine.generate(_request(ENDLESS))
        await anext(chunks)
        await engine.abort("a")

        assert ["abort"] == [chunk.finish_reason async for chunk in chunks]

    with_engine(use)


def test_a_refused_request_raises_before_its_first_chunk(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        with pytest.raises(RequestError, match="full") as caught:
            await _all(engine, _request(REFUSED))

        assert (429, None) == (caught.value.status, caught.value.param)

    with_engine(use)


def test_a_policy_is_set_and_reported_by_the_worker(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        state = await engine.set_policy(AlwaysPolicy(kind="always"))

        assert (Mode.SPECULATIVE, 3) == (state.mode, state.num_steps)
        assert state == (await engine.stats()).policy

    with_engine(use)


def test_a_policy_that_was_not_built_is_a_config_error(with_engine: WithEngine) -> None:
    policy = BatchThresholdPolicy(
        kind="batch_threshold", disable_above=2, resume_at=1, min_dwell_rounds=0, while_off="refill"
    )

    async def use(engine: RemoteEngine) -> None:
        with pytest.raises(ConfigError, match="policy='batch_threshold': expected a draft"):
            await engine.set_policy(policy)

    with_engine(use)


def test_a_long_step_leaves_the_worker_alive(with_engine: WithEngine) -> None:
    """A ping is answered in the middle of a step, with the age of that step."""

    async def use(engine: RemoteEngine) -> None:
        slow = asyncio.create_task(_all(engine, _request(SLOW)))
        await asyncio.sleep(0.5)
        asked = time.monotonic()
        pulse = await engine.alive()

        assert time.monotonic() - asked < 1.0
        assert pulse.step_seconds is not None
        assert 0.1 < pulse.step_seconds < 2.0
        await slow
        assert (await engine.alive()).step_seconds is None

    with_engine(use)


def test_a_worker_killed_in_the_middle_of_a_request_ends_it_with_an_error(
    with_engine: WithEngine,
) -> None:
    async def use(engine: RemoteEngine) -> None:
        waiting = asyncio.create_task(_all(engine, _request(ENDLESS, "other")))
        await asyncio.sleep(0.1)

        with pytest.raises(EngineError, match=r"killed by SIGKILL \(exit status 137\)"):
            await _all(engine, _request(DIES))
        with pytest.raises(EngineError, match="killed by SIGKILL"):
            await waiting
        for call in (
            engine.stats(),
            engine.alive(),
            engine.set_policy(AlwaysPolicy(kind="always")),
        ):
            with pytest.raises(EngineError, match="killed by SIGKILL"):
                await call
        with pytest.raises(EngineError, match="killed by SIGKILL"):
            await _all(engine, _request())

    with_engine(use)


def test_the_death_of_an_idle_worker_is_known_within_a_second(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        failed = asyncio.create_task(engine.wait_failed())
        await asyncio.sleep(0)
        (child,) = psutil.Process().children()
        os.kill(child.pid, signal.SIGTERM)

        assert "killed by SIGTERM" in await asyncio.wait_for(failed, 1.0)

    with_engine(use)


def test_a_loop_that_breaks_says_why_and_leaves_an_event(
    with_engine: WithEngine, tmp_path: Path
) -> None:
    async def use(engine: RemoteEngine) -> None:
        with pytest.raises(EngineError, match="the worker broke: ZeroDivisionError"):
            await _all(engine, _request(BREAKS))

    with_engine(use)

    (event,) = read_events(tmp_path / "events.jsonl")
    assert ("worker.fatal", "here") == (event.kind, event.fields["traceback"])


def test_a_step_that_outlasts_its_limit_ends_the_worker_and_names_what_waited(
    with_engine: WithEngine, tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    limit = 0.5

    async def use(engine: RemoteEngine) -> None:
        began = time.monotonic()
        with pytest.raises(EngineError, match="the worker hangs: its step has run for") as caught:
            await _all(engine, _request(HANGS, "stuck"))
        assert limit <= time.monotonic() - began < limit + 2.0
        assert "(scheduler.step_limit_seconds=0.5); requests in flight: stuck" in str(caught.value)
        assert str(caught.value) == await engine.wait_failed()

    with_engine(use, step_limit_seconds=limit)

    (event,) = read_events(tmp_path / "events.jsonl")
    assert ("worker.hung", ["stuck"]) == (event.kind, event.fields["request_ids"])
    assert "in _compute" in capfd.readouterr().err


def test_a_worker_that_is_stopped_counts_as_hung(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        (child,) = psutil.Process().children()
        os.kill(child.pid, signal.SIGSTOP)

        reason = await asyncio.wait_for(engine.wait_failed(), 10)

        assert "it has not answered for more than 0.3 s" in reason

    with_engine(use, step_limit_seconds=0.3)


def test_a_slow_step_is_none_that_hangs(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        assert "length" == (await _all(engine, _request(SLOW)))[-1].finish_reason

    with_engine(use, step_limit_seconds=5.0)


def test_an_idle_worker_is_closed_without_its_interpreters_end(with_engine: WithEngine) -> None:
    """A real one takes a second to take torch down; "never ends" takes ten minutes."""

    async def use(engine: RemoteEngine) -> None:
        began = time.monotonic()
        await engine.close()
        assert time.monotonic() - began < 0.5

    with_engine(use, "never ends")


def test_closing_ends_open_iterators_and_is_safe_to_repeat(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        endless = asyncio.create_task(_all(engine, _request(ENDLESS)))
        await asyncio.sleep(0.1)
        await engine.close()
        await engine.close()

        with pytest.raises(EngineError, match="the engine is closed"):
            await endless
        with pytest.raises(EngineError, match="the engine is closed"):
            await _all(engine, _request())
        assert "the engine is closed" == await engine.wait_failed()

    with_engine(use)


def test_aborting_an_unknown_request_is_no_error(with_engine: WithEngine) -> None:
    async def use(engine: RemoteEngine) -> None:
        await engine.abort("never seen")
        await _all(engine, _request())
        await engine.abort("a")

    with_engine(use)


def test_an_event_that_cannot_be_kept_stops_the_worker(
    plan: Plan, limits: PhaseLimits, tmp_path: Path
) -> None:
    """A run whose record is lost must not go on as if nothing had happened."""

    async def main() -> None:
        ledger, events = Ledger(tmp_path / "ledger.jsonl"), EventLog(Path("/dev/full"))
        worker = await build_worker(
            plan,
            ledger,
            events.append,
            limits=limits,
            step_limit_seconds=60.0,
            command=(*SCRIPTED, "none"),
        )
        with pytest.raises(EngineError, match="the worker was stopped: JournalError"):
            await _all(worker.engine, _request(BREAKS))
        await worker.engine.close()
        ledger.close()
        with pytest.raises(OSError, match="No space left"):
            events.close()

    asyncio.run(main())
