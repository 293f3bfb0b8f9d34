"""Who gets what in a step: prompts, rows, and the kind of round."""

from pathlib import Path

import pytest
import torch

from specserve.config.policy import BatchThresholdPolicy, OffPolicy, PolicyConfig
from specserve.engine import GenerationRequest
from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.loops import Sizes, Speculation, make_request, open_loop
from specserve.torch_engine.loop import Loop
from specserve.torch_engine.scheduler import Scheduler
from specserve.torch_engine.step_work import Pass, StepWork


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("random")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


def opened(
    random_pair: tuple[Path, Path],
    *,
    policy: PolicyConfig | None = None,
    max_running_requests: int = 8,
    max_kv_tokens: int | None = None,
) -> Loop:
    """16 prompt tokens fit into a step."""
    return open_loop(
        random_pair[0],
        Speculation(draft_folder=random_pair[1], num_steps=2),
        policy=policy,
        sizes=Sizes(
            prefill_chunk_tokens=16,
            max_running_requests=max_running_requests,
            max_kv_tokens=max_kv_tokens,
        ),
    )


def request(
    name: str, prompt_tokens: int, *, max_tokens: int = 30, speculation: bool = True
) -> GenerationRequest:
    return make_request(
        [40] * prompt_tokens,
        request_id=name,
        max_tokens=max_tokens,
        speculation=speculation,
        ignore_eos=True,
    )


def submit(loop: Loop, *requests: GenerationRequest) -> Scheduler:
    for one in requests:
        loop.submit(one)
    return loop._scheduler


def planned(scheduler: Scheduler) -> StepWork:
    work = scheduler.next_work()
    assert work is not None
    return work


def names(one: Pass) -> str:
    return " ".join(active.request.request_id for active in one.requests)


def first_tokens(work: StepWork) -> list[str]:
    """Whose prompts end in the step, for each pass over prompts that ends some."""
    return [names(one) for one in work.passes if one.is_prefill]


def rounds(work: StepWork) -> list[tuple[str, int]]:
    """Who decodes, and how deep; 0 is plainly."""
    return [
        (names(one), one.depth.num_steps if one.depth else 0)
        for one in work.passes
        if not one.is_prefill
    ]


def test_nobody_is_no_work(random_pair: tuple[Path, Path]) -> None:
    assert opened(random_pair)._scheduler.next_work() is None


def test_a_step_takes_so_many_prompt_tokens_first_come_first_served(
    random_pair: tuple[Path, Path],
) -> None:
    """5 + 5 + 6 of 20, then the other 14 + 2 of 3, then the last 1."""
    loop = opened(random_pair)
    scheduler = submit(loop, request("a", 5), request("b", 5), request("long", 20), request("d", 3))
    steps, counts = [], []
    for _ in range(4):
        steps.append(" ".join(first_tokens(planned(scheduler))))
        counts.append(loop.stats().prefill_tokens)

    assert ["a b", "long", "d", ""] == steps
    assert [16, 32, 33, 33] == counts


def test_prompts_that_fit_into_a_step_pass_together(random_pair: tuple[Path, Path]) -> None:
    """One pass for all of them, and one round of all that decode."""
    work = planned(submit(opened(random_pair), *(request(str(i), 4) for i in range(4))))

    assert ["0 1 2 3"] == first_tokens(work)
    assert [("0 1 2 3", 2)] == rounds(work)
    assert 2 == len(work.calls)


def test_whoever_has_a_first_token_decodes_in_the_same_step(
    random_pair: tuple[Path, Path],
) -> None:
    """So a long prompt beside it costs a running request no round."""
    scheduler = submit(opened(random_pair), request("short", 2), request("long", 40))

    assert [[("short", 2)]] * 2 == [rounds(planned(scheduler)) for _ in range(2)]
    assert [("short long", 2)] == rounds(planned(scheduler))


def test_those_who_speculate_come_first_and_the_others_decode_plainly(
    random_pair: tuple[Path, Path],
) -> None:
    scheduler = submit(
        opened(random_pair),
        request("plain", 2, speculation=False),
        request("a", 2),
        request("b", 2),
    )
    decoding = rounds(planned(scheduler))

    assert [2, 0] == [num_steps for _, num_steps in decoding]
    assert [{"a", "b"}, {"plain"}] == [set(who.split()) for who, _ in decoding]


def test_the_policy_is_asked_about_those_who_decode_not_about_prompts(
    random_pair: tuple[Path, Path],
) -> None:
    """Two of them are not too many while the second is a prompt; once both decode, they are."""
    policy = BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=1,
        resume_at=1,
        min_dwell_rounds=0,
        while_off="skip",
    )
    scheduler = submit(opened(random_pair, policy=policy), request("a", 2), request("b", 18))

    assert [("a", 2)] == rounds(planned(scheduler))
    assert [("a b", 0)] == rounds(planned(scheduler))


def test_off_is_one_plain_round_for_all(random_pair: tuple[Path, Path]) -> None:
    scheduler = submit(
        opened(random_pair, policy=OffPolicy(kind="off")),
        request("a", 2),
        request("plain", 2, speculation=False),
    )
    work = planned(scheduler)

    assert [("a plain", 0)] == rounds(work)
    assert 2 == len(work.calls)


def test_who_does_not_fit_waits_and_comes_in_once_someone_leaves(
    random_pair: tuple[Path, Path],
) -> None:
    """Two rows, of which the first is given back: the next step already passes the next prompt."""
    loop = opened(random_pair, max_running_requests=2)
    scheduler = submit(loop, request("a", 2), request("b", 2), request("c", 2))
    with torch.inference_mode():
        before = planned(scheduler)
    first = before.passes[0].requests[0]
    scheduler.release(first)
    after = planned(scheduler)

    assert ["a b"] == first_tokens(before)
    assert ["c"] == first_tokens(after)
    assert [("b c", 2)] == rounds(after)


def test_a_request_too_large_for_what_is_free_lets_nobody_pass(
    random_pair: tuple[Path, Path],
) -> None:
    """So it is not starved by the small ones behind it."""
    loop = opened(random_pair, max_kv_tokens=100)
    scheduler = submit(
        loop,
        request("a", 10, max_tokens=50),
        request("large", 10, max_tokens=50),
        request("small", 2, max_tokens=2),
    )

    assert ["a"] == first_tokens(planned(scheduler))
    assert [] == first_tokens(planned(scheduler))
    assert 2 == loop.stats().queued


@pytest.mark.parametrize("num_planned", [0, 1, 2])
def test_an_abort_gives_everything_back_wherever_the_request_is(
    random_pair: tuple[Path, Path], num_planned: int
) -> None:
    """Waiting, in the midst of its prompt, decoding; and then there is nothing to do."""
    loop = opened(random_pair)
    scheduler = submit(loop, request("a", 20))
    for _ in range(num_planned):
        planned(scheduler)
    chunk = scheduler.abort("a")
    stats = loop.stats()

    assert chunk is not None
    assert ("abort", ()) == (chunk.finish_reason, chunk.token_ids)
    assert (0, 0, 0) == (stats.running, stats.running_decodes, stats.queued)
    assert stats.total_slots == stats.free_slots
    assert scheduler.next_work() is None
    assert scheduler.abort("a") is None
