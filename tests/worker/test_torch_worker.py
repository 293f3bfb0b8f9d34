"""The real worker process of the torch engine, built once and used by every test here."""

import asyncio
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil
import pytest

from specserve.config.build import PhaseLimits
from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy, OffPolicy
from specserve.engine import GenerationRequest, Mode, Sampling
from specserve.errors import ConfigError, EngineError, RequestError
from specserve.plan import Plan
from specserve.worker.events import EventLog, read_events
from specserve.worker.launch import Worker, build_worker
from specserve.worker.ledger import Ledger, missing_phases
from specserve.worker.phases import Phase
from specserve.worker.remote import RemoteEngine

# One running decode speculates, two do not.
THRESHOLD = BatchThresholdPolicy(
    kind="batch_threshold", disable_above=1, resume_at=1, min_dwell_rounds=0, while_off="skip"
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("run")


@pytest.fixture(scope="module")
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as running:
        yield running


@pytest.fixture(scope="module")
def worker(
    runner: asyncio.Runner,
    folder: Path,
    make_plan: Callable[..., Plan],
    make_limits: Callable[..., PhaseLimits],
) -> Iterator[Worker]:
    ledger, events = Ledger(folder / "ledger.jsonl"), EventLog(folder / "events.jsonl")
    plan = make_plan(policy=THRESHOLD)
    built = runner.run(
        build_worker(plan, ledger, events.append, limits=make_limits(60.0), step_limit_seconds=60.0)
    )
    yield built
    runner.run(built.engine.close())
    ledger.close()
    events.close()
    assert [] == psutil.Process().children(recursive=True)


def _request(identity: str, prompt: tuple[int, ...], max_tokens: int = 24) -> GenerationRequest:
    return GenerationRequest(
        request_id=identity,
        prompt_token_ids=prompt,
        max_tokens=max_tokens,
        sampling=Sampling(temperature=0.0, top_p=1.0, top_k=None, min_p=0.0, seed=0, logit_bias={}),
        stop=(),
        stop_token_ids=(),
        top_logprobs=None,
        speculation=True,
        ignore_eos=True,
    )


async def _tokens(engine: RemoteEngine, request: GenerationRequest) -> tuple[int, ...]:
    return tuple([t async for chunk in engine.generate(request) for t in chunk.token_ids])


def test_every_phase_of_a_build_has_its_records(worker: Worker) -> None:
    assert () == missing_phases(worker.records, 1)
    closing = {record.phase: record.event for record in worker.records if record.event != "start"}
    assert {Phase.CUDA_GRAPHS} == {phase for phase, event in closing.items() if event == "skipped"}
    assert {"done", "skipped"} == set(closing.values())


def test_both_modes_were_proved_before_the_worker_was_ready(worker: Worker) -> None:
    plain, speculative = worker.proof.proofs

    assert plain.token_ids == speculative.token_ids
    assert (0, 0) == (plain.drafted, plain.verify_rounds)
    assert speculative.drafted > 0
    assert worker.proof.parted_at is None


def test_a_batch_gives_each_request_what_it_gets_alone_and_switches_are_events(
    worker: Worker, runner: asyncio.Runner, folder: Path
) -> None:
    requests = [_request(str(n), tuple(range(n + 1, 2 * n + 9))) for n in range(4)]

    async def both() -> tuple[list[tuple[int, ...]], list[tuple[int, ...]]]:
        alone = [await _tokens(worker.engine, request) for request in requests]
        together = await asyncio.gather(*(_tokens(worker.engine, r) for r in requests))
        return alone, together

    alone, together = runner.run(both())

    assert alone == together
    assert [24] * 4 == [len(tokens) for tokens in alone]
    switches = [e.fields for e in read_events(folder / "events.jsonl") if e.kind == "policy.switch"]
    assert "plain" in [fields["mode"] for fields in switches]
    numbers = [fields["switches"] for fields in switches]
    assert sorted(set(numbers)) == numbers
    assert numbers[-1] == sum(1 + fields["left_out"] for fields in switches)
    assert all(fields["from_num_steps"] != fields["to_num_steps"] for fields in switches)


@pytest.mark.parametrize("leave", ["aclose", "abort"])
def test_a_request_that_is_given_up_frees_its_slots(
    worker: Worker, runner: asyncio.Runner, leave: str
) -> None:
    async def give_up() -> str | None:
        chunks = worker.engine.generate(_request(leave, (1, 2, 3), max_tokens=180))
        await anext(chunks)
        if leave == "aclose":
            await chunks.aclose()
            return None
        await worker.engine.abort(leave)
        return [chunk.finish_reason async for chunk in chunks][-1]

    async def settled() -> tuple[int, int, int]:
        while (stats := await worker.engine.stats()).running:
            await asyncio.sleep(0.01)
        return stats.running, stats.queued, stats.total_slots - stats.free_slots

    reason = runner.run(give_up())

    assert ("abort" if leave == "abort" else None) == reason
    assert (0, 0, 0) == runner.run(asyncio.wait_for(settled(), 20))


def test_a_prompt_longer_than_the_context_is_refused_by_name(
    worker: Worker, runner: asyncio.Runner
) -> None:
    with pytest.raises(RequestError) as caught:
        runner.run(_tokens(worker.engine, _request("long", (1,) * 500)))

    assert 400 == caught.value.status
    assert caught.value.param is not None


def test_a_policy_is_replaced_at_run_time_and_refused_if_it_was_not_built(
    worker: Worker, runner: asyncio.Runner
) -> None:
    engine = worker.engine
    refill = THRESHOLD.model_copy(update={"while_off": "refill"})

    state = runner.run(engine.set_policy(OffPolicy(kind="off")))
    assert (Mode.PLAIN, 0) == (state.mode, state.num_steps)
    with pytest.raises(ConfigError, match="while_off"):
        runner.run(engine.set_policy(refill))
    assert OffPolicy(kind="off") == runner.run(engine.stats()).policy.policy
    state = runner.run(engine.set_policy(AlwaysPolicy(kind="always")))
    assert (Mode.SPECULATIVE, 3) == (state.mode, state.num_steps)


def test_a_terminal_interrupt_is_left_to_the_supervisor(
    worker: Worker, runner: asyncio.Runner
) -> None:
    (child,) = psutil.Process().children()
    os.kill(child.pid, signal.SIGINT)

    assert 24 == len(runner.run(_tokens(worker.engine, _request("after", (5, 6)))))
    assert runner.run(worker.engine.alive()).step_seconds is None


def test_a_worker_killed_while_it_decodes_ends_every_request(
    worker: Worker, runner: asyncio.Runner
) -> None:
    """The last test: afterwards there is no worker."""

    async def kill() -> None:
        requests = [_request(str(n), (1, 2, 3 + n), max_tokens=180) for n in range(6)]
        running = [asyncio.create_task(_tokens(worker.engine, request)) for request in requests]
        await asyncio.sleep(0.05)
        os.kill(psutil.Process().children()[0].pid, signal.SIGKILL)
        for result in await asyncio.gather(*running, return_exceptions=True):
            assert isinstance(result, EngineError)
            assert "killed by SIGKILL" in str(result)

    runner.run(asyncio.wait_for(kill(), 20))
