"""While speculation is off: what it costs, and what the draft knows when it comes back on."""

from pathlib import Path

import pytest
import torch

from specserve.config.policy import AlwaysPolicy, BatchThresholdPolicy, OffPolicy, WhileOff
from specserve.engine import Mode
from specserve.errors import ConfigError
from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.constructed import ConstructedPair, construct_pair
from specserve.testing.loops import Sizes, Speculation, make_request, open_loop, run_requests
from specserve.torch_engine.loop import Loop

NUM_STEPS = 3
PROMPT = tuple(range(40, 70))


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("random")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


@pytest.fixture(scope="module")
def perfect_pair(tmp_path_factory: pytest.TempPathFactory) -> ConstructedPair:
    return construct_pair(tmp_path_factory.mktemp("perfect"), p=1.0)


def threshold(
    while_off: WhileOff, *, disable_above: int = 1, min_dwell_rounds: int = 0
) -> BatchThresholdPolicy:
    return BatchThresholdPolicy(
        kind="batch_threshold",
        disable_above=disable_above,
        resume_at=disable_above,
        min_dwell_rounds=min_dwell_rounds,
        while_off=while_off,
    )


def interrupted(
    target: Path, draft: Path, while_off: WhileOff, *, kind: str = "sync", topk: int = 1
) -> Loop:
    return open_loop(
        target,
        Speculation(draft_folder=draft, num_steps=NUM_STEPS, topk=topk, while_off=while_off),
        policy=threshold(while_off),
        sizes=Sizes(kind="overlap" if kind == "overlap" else "sync", prefill_chunk_tokens=16),
    )


def step_until(loop: Loop, mode: Mode) -> None:
    for _ in range(100):
        loop.step()
        if loop.stats().policy.mode is mode:
            return
    raise AssertionError(f"never {mode}")


def draft_state(loop: Loop) -> tuple[int, torch.Tensor]:
    """Row 0's number of draft entries, and their keys and values [2, Hkv, entries, D]."""
    drafter = loop._scheduler._drafter
    assert drafter is not None
    held = int(drafter.rows.draft_lengths[0])
    return held, drafter.cache.layers[0][:, 0, :, :held]


@pytest.mark.parametrize("kind", ["sync", "overlap"])
@pytest.mark.parametrize("topk", [1, 2])
@pytest.mark.parametrize("while_off", ["warm", "refill"])
def test_after_resuming_the_draft_knows_what_it_would_have_known(
    random_pair: tuple[Path, Path], while_off: WhileOff, topk: int, kind: str
) -> None:
    """Its cache is that of a run that was never interrupted: this draft needs its state."""
    request = make_request(PROMPT, request_id="a", max_tokens=60, ignore_eos=True)
    loop = interrupted(*random_pair, while_off, kind=kind, topk=topk)
    loop.submit(request)
    for _ in range(6):
        loop.step()
    loop.submit(make_request([9], request_id="b", max_tokens=21, ignore_eos=True))
    step_until(loop, Mode.PLAIN)
    step_until(loop, Mode.SPECULATIVE)
    loop.step()
    loop.close()
    held, state = draft_state(loop)

    reference = open_loop(
        random_pair[0], Speculation(draft_folder=random_pair[1], num_steps=NUM_STEPS, topk=topk)
    )
    reference.submit(request)
    while draft_state(reference)[0] < held:
        reference.step()
    _, expected = draft_state(reference)

    assert held > len(PROMPT) + 20
    torch.testing.assert_close(state, expected[:, :, :held], rtol=1e-3, atol=1e-4)


@pytest.mark.parametrize("while_off", ["warm", "refill"])
def test_a_prompt_that_came_while_off_is_known_too(
    random_pair: tuple[Path, Path], while_off: WhileOff
) -> None:
    request = make_request(PROMPT, request_id="a", max_tokens=60, ignore_eos=True)
    loop = open_loop(
        random_pair[0],
        Speculation(draft_folder=random_pair[1], num_steps=NUM_STEPS, while_off=while_off),
        policy=OffPolicy(kind="off"),
        sizes=Sizes(prefill_chunk_tokens=16),
    )
    loop.submit(request)
    for _ in range(12):
        loop.step()
    loop.set_policy(AlwaysPolicy(kind="always"))
    loop.step()
    held, state = draft_state(loop)
    reference = open_loop(
        random_pair[0], Speculation(draft_folder=random_pair[1], num_steps=NUM_STEPS)
    )
    reference.submit(request)
    while draft_state(reference)[0] < held:
        reference.step()
    _, expected = draft_state(reference)

    assert held > len(PROMPT) + 5
    torch.testing.assert_close(state, expected[:, :, :held], rtol=1e-3, atol=1e-4)


def test_skip_keeps_what_came_before_the_hole_and_goes_on_behind_it(
    random_pair: tuple[Path, Path],
) -> None:
    loop = interrupted(*random_pair, "skip")
    loop.submit(make_request(PROMPT, request_id="a", max_tokens=60, ignore_eos=True))
    for _ in range(6):
        loop.step()
    held_before, state_before = draft_state(loop)
    kept = state_before.clone()
    loop.submit(make_request([9], request_id="b", max_tokens=21, ignore_eos=True))
    step_until(loop, Mode.PLAIN)
    step_until(loop, Mode.SPECULATIVE)
    held, state = draft_state(loop)
    rows = loop._scheduler._decoder.rows

    assert held_before + NUM_STEPS + 1 >= held
    assert held + 10 < int(rows.covered[0])
    torch.testing.assert_close(state[:, :, :held_before], kept)


@pytest.mark.parametrize("kind", ["sync", "overlap"])
@pytest.mark.parametrize("while_off", ["warm", "refill", "skip"])
@pytest.mark.parametrize("topk", [1, 3])
def test_outputs_and_acceptance_survive_switching(
    perfect_pair: ConstructedPair, while_off: WhileOff, topk: int, kind: str
) -> None:
    """A perfect draft keeps its acceptance length of num_steps + 1 from the first round on."""
    loop = interrupted(
        perfect_pair.target_folder, perfect_pair.draft_folder, while_off, kind=kind, topk=topk
    )
    requests = [
        make_request([300 + i] * (1 + 9 * i), request_id=str(i), max_tokens=20 + 17 * i)
        for i in range(4)
    ]
    outputs = run_requests(loop, requests)
    stats = loop.stats()
    loop.close()

    assert [
        perfect_pair.expected_output(request.prompt_token_ids, request.max_tokens)
        for request in requests
    ] == [output.token_ids for output in outputs]
    assert stats.acceptance_length == NUM_STEPS + 1
    assert 0 < stats.plain_steps
    assert 0 < stats.policy.switches
    assert 0 < min(stats.seconds_by_mode.values())
    assert stats.emitted == sum(stats.emitted_by_mode.values())


@pytest.mark.parametrize(("while_off", "upkeep"), [("skip", 0), ("refill", 0), ("warm", 21)])
def test_off_neither_proposes_nor_verifies(
    random_pair: tuple[Path, Path], while_off: WhileOff, upkeep: int
) -> None:
    """20 tokens are 1 of the prompt and 19 rounds; warm: 2 prompt chunks and 19 passes."""
    loop = open_loop(
        random_pair[0],
        Speculation(draft_folder=random_pair[1], num_steps=NUM_STEPS, while_off=while_off),
        policy=OffPolicy(kind="off"),
        sizes=Sizes(prefill_chunk_tokens=16),
    )
    (output,) = run_requests(loop, [make_request(PROMPT, max_tokens=20, ignore_eos=True)])
    stats = loop.stats()

    assert (0, 0, 0) == (stats.draft_calls, stats.verify_calls, stats.drafted)
    assert upkeep == stats.draft_upkeep_calls
    assert 19 == stats.plain_steps == output.counters.plain_steps
    assert stats.acceptance_length is None


def test_a_speculative_round_is_num_steps_draft_passes_and_one_verify(
    perfect_pair: ConstructedPair,
) -> None:
    """1 + 6 * 4 = 25 tokens take 6 rounds; the one-token prompt has nothing for the draft."""
    speculation = Speculation(draft_folder=perfect_pair.draft_folder, num_steps=NUM_STEPS)
    loop = open_loop(perfect_pair.target_folder, speculation)
    run_requests(loop, [make_request([300], max_tokens=25)])
    stats = loop.stats()

    assert (18, 0, 6) == (stats.draft_calls, stats.draft_upkeep_calls, stats.verify_calls)
    assert (18, 18, 25, 6) == (stats.drafted, stats.accepted, stats.emitted, stats.verify_rounds)
    assert (6, 6, 6) == stats.accepted_by_position


@pytest.mark.parametrize(("running", "mode"), [(2, Mode.SPECULATIVE), (3, Mode.PLAIN)])
def test_the_threshold_counts_running_decodes(
    perfect_pair: ConstructedPair, running: int, mode: Mode
) -> None:
    """N still speculate, N + 1 do not, in the very round in which the last one joins."""
    loop = open_loop(
        perfect_pair.target_folder,
        Speculation(draft_folder=perfect_pair.draft_folder),
        policy=threshold("skip", disable_above=2),
    )
    for i in range(running):
        loop.submit(make_request([300 + i], request_id=str(i), max_tokens=20))
    loop.step()

    assert mode is loop.stats().policy.mode
    assert running == loop.stats().running_decodes


def test_a_policy_that_was_not_built_is_refused(perfect_pair: ConstructedPair) -> None:
    plain = open_loop(perfect_pair.target_folder)
    speculation = Speculation(draft_folder=perfect_pair.draft_folder, while_off="warm")
    warm = open_loop(perfect_pair.target_folder, speculation)

    with pytest.raises(ConfigError, match="no draft was built"):
        plain.set_policy(AlwaysPolicy(kind="always"))
    with pytest.raises(ConfigError, match=r"policy\.while_off='refill'"):
        warm.set_policy(threshold("refill"))
    assert "skip" == warm.set_policy(threshold("skip")).policy.model_dump()["while_off"]
    assert Mode.PLAIN is warm.set_policy(OffPolicy(kind="off")).mode
