"""Speculation changes nothing but the speed; `test_depth_grid` has every depth and width."""

import random
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import pytest
import torch
from transformers import AutoModelForCausalLM

from specserve.config.policy import OffPolicy
from specserve.engine import GenerationChunk, GenerationRequest
from specserve.errors import EngineError, RequestError
from specserve.testing.checkpoints import Architecture, write_draft, write_target
from specserve.testing.constructed import ConstructedPair, construct_pair
from specserve.testing.loops import (
    GREEDY,
    Generated,
    Sizes,
    Speculation,
    join_chunks,
    make_request,
    open_loop,
    run_requests,
)
from specserve.torch_engine.loop import Loop

Kind = Literal["overlap", "sync"]


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A random target, and a random head that has nothing to do with it."""
    folder = tmp_path_factory.mktemp("random")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


@pytest.fixture(scope="module")
def pairs(tmp_path_factory: pytest.TempPathFactory) -> dict[float, ConstructedPair]:
    """By the share of tokens after which the draft is right: never, often, always."""
    folder = tmp_path_factory.mktemp("constructed")
    return {p: construct_pair(folder / str(p), p=p) for p in (0.0, 0.7, 1.0)}


def mixed_requests(seed: int, num: int = 6) -> list[GenerationRequest]:
    """Prompts from one token to several chunks, outputs from one token to dozens."""
    rng = random.Random(seed)
    return [
        make_request(
            [rng.randrange(256) for _ in range(rng.choice([1, 2, 5, 16, 17, 60, 130]))],
            request_id=str(i),
            max_tokens=rng.choice([1, 2, 7, 20, 33]),
            ignore_eos=True,
        )
        for i in range(num)
    ]


def tokens(outputs: list[Generated]) -> list[tuple[int, ...]]:
    return [output.token_ids for output in outputs]


@pytest.fixture(scope="module")
def plain_outputs(random_pair: tuple[Path, Path]) -> list[Generated]:
    """The same requests, one at a time, without a draft."""
    loop = open_loop(random_pair[0])
    return [run_requests(loop, [request])[0] for request in mixed_requests(1)]


@pytest.mark.parametrize("architecture", ["llama", "mistral", "qwen2", "qwen3"])
def test_plain_decoding_equals_transformers(tmp_path: Path, architecture: Architecture) -> None:
    target = write_target(tmp_path / "target", architecture=architecture, seed=3)
    model = AutoModelForCausalLM.from_pretrained(target)
    requests = mixed_requests(5, num=4)
    expected = []
    for request in requests:
        prompt = torch.tensor([request.prompt_token_ids])
        ids = model.generate(
            prompt,
            attention_mask=torch.ones_like(prompt),
            max_new_tokens=request.max_tokens,
            do_sample=False,
            eos_token_id=None,
            pad_token_id=0,
        )
        expected.append(tuple(ids[0, prompt.shape[1] :].tolist()))
    outputs = run_requests(open_loop(target, sizes=Sizes(prefill_chunk_tokens=16)), requests)

    assert expected == tokens(outputs)


@pytest.mark.parametrize("architecture", ["mistral", "qwen2", "qwen3"])
@pytest.mark.parametrize(("num_steps", "topk"), [(4, 1), (4, 3)])
def test_no_architecture_makes_a_difference(
    tmp_path: Path, architecture: Architecture, num_steps: int, topk: int
) -> None:
    target = write_target(tmp_path / "target", architecture=architecture, seed=3)
    draft = write_draft(tmp_path / "draft", target_folder=target)
    requests = mixed_requests(1)
    speculation = Speculation(draft_folder=draft, num_steps=num_steps, topk=topk)

    expected = tokens(run_requests(open_loop(target), requests))

    assert expected == tokens(run_requests(open_loop(target, speculation), requests))


@pytest.mark.parametrize("num_draft_tokens", [2, 3, 6, 11])
def test_a_tree_cut_short_changes_no_token(
    random_pair: tuple[Path, Path],
    plain_outputs: list[Generated],
    num_draft_tokens: int,
) -> None:
    target, draft = random_pair
    speculation = Speculation(
        draft_folder=draft, num_steps=4, topk=3, num_draft_tokens=num_draft_tokens
    )
    outputs = run_requests(open_loop(target, speculation), mixed_requests(1))

    assert tokens(plain_outputs) == tokens(outputs)
    for output in outputs:
        assert (num_draft_tokens - 1) * output.counters.verify_rounds == output.counters.drafted


@pytest.mark.parametrize("kind", ["sync", "overlap"])
@pytest.mark.parametrize("p", [0.0, 0.7, 1.0])
@pytest.mark.parametrize(("num_steps", "topk"), [(1, 1), (3, 1), (8, 1), (3, 4)])
def test_acceptance_is_what_the_construction_says(
    pairs: dict[float, ConstructedPair], p: float, num_steps: int, topk: int, kind: Kind
) -> None:
    """Exact output and exact acceptance, for a draft that is never, often and always right."""
    pair = pairs[p]
    speculation = Speculation(draft_folder=pair.draft_folder, num_steps=num_steps, topk=topk)
    loop = open_loop(pair.target_folder, speculation, sizes=Sizes(kind=kind))
    prompts = [[300], [301, 350], list(range(260, 340)), [5, 6, 7]]
    outputs = run_requests(
        loop,
        [
            make_request(prompt, request_id=str(i), max_tokens=41)
            for i, prompt in enumerate(prompts)
        ],
    )
    stats = loop.stats()
    loop.close()

    assert [pair.expected_output(prompt, 41) for prompt in prompts] == tokens(outputs)
    for prompt, output in zip(prompts, outputs, strict=True):
        rounds = output.counters.verify_rounds
        assert sum(pair.expected_accepted(prompt, rounds, num_steps)) == output.counters.accepted
    assert stats.accepted == sum(output.counters.accepted for output in outputs)
    assert stats.accepted == sum(stats.accepted_by_position)
    if p in (0.0, 1.0):
        assert (1.0 if p == 0.0 else num_steps + 1.0) == stats.acceptance_length


def test_a_request_can_opt_out_of_speculation(pairs: dict[float, ConstructedPair]) -> None:
    """It drafts nothing, the others do, whoever comes first, and all outputs are right."""
    pair = pairs[0.7]
    loop = open_loop(pair.target_folder, Speculation(draft_folder=pair.draft_folder))
    requests = [
        make_request([300 + i], request_id=str(i), max_tokens=10 + 7 * i, speculation=i % 2 == 1)
        for i in range(7)
    ]
    outputs = run_requests(loop, requests, every=2)

    for request, output in zip(requests, outputs, strict=True):
        assert (
            pair.expected_output(request.prompt_token_ids, request.max_tokens) == output.token_ids
        )
        assert request.speculation == (output.counters.drafted > 0)
        assert request.speculation == (output.counters.plain_steps == 0)
    assert loop.stats().total_slots == loop.stats().free_slots


@pytest.mark.parametrize("kind", ["sync", "overlap"])
@pytest.mark.parametrize(("num_steps", "topk"), [(3, 1), (3, 2)])
def test_sampled_tokens_of_a_seed_are_the_same_with_and_without_speculation(
    random_pair: tuple[Path, Path], num_steps: int, topk: int, kind: Kind
) -> None:
    """And in any company: greedy neighbours, other settings, logprobs, biases."""
    target, draft = random_pair
    requests = [
        make_request([10], request_id="a", sampling=replace(GREEDY, temperature=1.0, seed=1)),
        make_request([10], request_id="b", sampling=replace(GREEDY, temperature=1.0, seed=2)),
        make_request([20, 3], request_id="c"),
        make_request(
            [10],
            request_id="d",
            sampling=replace(GREEDY, temperature=0.7, top_p=0.8, top_k=20, seed=1),
            top_logprobs=2,
        ),
        make_request(
            [20, 3], request_id="e", sampling=replace(GREEDY, logit_bias={65: 8.0}), top_logprobs=0
        ),
    ]
    requests = [replace(request, ignore_eos=True) for request in requests]
    plain = open_loop(target)
    expected = [run_requests(plain, [request])[0] for request in requests]
    speculation = Speculation(draft_folder=draft, num_steps=num_steps, topk=topk)
    loop = open_loop(target, speculation, sizes=Sizes(kind=kind))
    outputs = run_requests(loop, requests)
    loop.close()

    assert tokens(expected) == tokens(outputs)
    assert 5 == len({output.token_ids for output in outputs})
    for one, other in zip(expected, outputs, strict=True):
        assert [entry.token_id for entry in one.logprobs] == [e.token_id for e in other.logprobs]
        for mine, theirs in zip(one.logprobs, other.logprobs, strict=True):
            assert mine.logprob == pytest.approx(theirs.logprob, abs=1e-4)
            assert len(mine.top) == len(theirs.top)
    assert [0, 0, 0, 32, 32] == [len(output.logprobs) for output in outputs]


def test_a_banned_token_never_appears(random_pair: tuple[Path, Path]) -> None:
    """logit_bias -100 holds at every position that is verified."""
    target, draft = random_pair
    loop = open_loop(target, Speculation(draft_folder=draft, topk=2))
    (free,) = run_requests(loop, [make_request([10], ignore_eos=True)])
    banned = free.token_ids[7]
    bias = replace(GREEDY, logit_bias={banned: -100.0})
    (output,) = run_requests(loop, [make_request([10], sampling=bias, ignore_eos=True)])

    assert banned in free.token_ids
    assert banned not in output.token_ids
    assert (
        free.token_ids[: free.token_ids.index(banned)]
        == output.token_ids[: free.token_ids.index(banned)]
    )


def test_a_row_too_short_for_the_overshoot_refuses_what_would_need_it(
    random_pair: tuple[Path, Path],
) -> None:
    """Eight steps of four need 32 slots beyond a request's last token, and one is scratch."""
    target, draft = random_pair
    speculation = Speculation(draft_folder=draft, num_steps=8, topk=4, num_draft_tokens=4)
    sizes = Sizes(kind="overlap", max_running_requests=2, row_tokens=512)
    loop = open_loop(target, speculation, sizes=sizes)
    usable = 512 - 1 - 8 - 7 * 4
    with pytest.raises(RequestError, match=f"context of {usable} tokens"):
        loop.submit(make_request([1] * 400, max_tokens=usable - 399))
    request = make_request([1] * 400, max_tokens=usable - 400, ignore_eos=True)
    (output,) = run_requests(loop, [request])
    loop.close()

    assert usable - 400 == len(output.token_ids)


def test_groups_are_made_anew_when_someone_leaves(random_pair: tuple[Path, Path]) -> None:
    """Rows 0 and 1 mean other requests, with other settings, once row 0 has ended."""
    target, draft = random_pair
    sampling = replace(GREEDY, temperature=1.0, seed=3)
    requests = [
        make_request([1], request_id="a", max_tokens=4, ignore_eos=True),
        make_request([2], request_id="b", ignore_eos=True),
        make_request([3], request_id="c", sampling=sampling, speculation=False, ignore_eos=True),
    ]
    expected = [run_requests(open_loop(target), [request])[0] for request in requests]
    loop = open_loop(target, Speculation(draft_folder=draft))
    for request in requests:
        loop.submit(request)
    chunks: dict[str, list[GenerationChunk]] = {"a": [], "b": [], "c": []}
    while loop.has_work:
        for chunk in loop.step():
            chunks[chunk.request_id].append(chunk)
            if chunk.request_id == "a" and chunk.finish_reason:
                loop.set_policy(OffPolicy(kind="off"))

    assert [one.token_ids for one in expected] == [
        join_chunks(one).token_ids for one in chunks.values()
    ]


@pytest.mark.parametrize("kind", ["sync", "overlap"])
def test_everything_comes_back_after_any_mix_of_ends(
    random_pair: tuple[Path, Path], kind: Kind
) -> None:
    """Finish, stop, abort (waiting, in prefill, decoding) and refusals, in a random order."""
    target, draft = random_pair
    loop = open_loop(
        target,
        Speculation(draft_folder=draft, num_steps=2),
        sizes=Sizes(kind=kind, max_running_requests=3, prefill_chunk_tokens=16, max_kv_tokens=400),
    )
    rng = random.Random(7)
    open_ids: set[str] = set()
    ended: dict[str, str] = {}
    for number in range(60):
        request = make_request(
            [rng.randrange(256) for _ in range(rng.choice([1, 20, 70, 600]))],
            request_id=str(number),
            max_tokens=rng.choice([0, 1, 5, 30]),
            stop=rng.choice([(), ("e", "a")]),
            speculation=rng.random() < 0.7,
        )
        try:
            loop.submit(request)
            open_ids.add(request.request_id)
        except RequestError:
            ended[request.request_id] = "refused"
        if open_ids and rng.random() < 0.3:
            loop.abort(rng.choice(sorted(open_ids)))
        for _ in range(rng.randrange(3)):
            note_ends(loop, open_ids, ended)
    while loop.has_work:
        note_ends(loop, open_ids, ended)
    stats = loop.stats()
    loop.close()

    assert set() == open_ids
    assert {"refused", "abort", "stop", "length"} == set(ended.values())
    assert (0, 0, 0) == (stats.running, stats.running_decodes, stats.queued)
    assert 400 == stats.free_slots


def note_ends(loop: Loop, open_ids: set[str], ended: dict[str, str]) -> None:
    for chunk in loop.step():
        assert chunk.request_id in open_ids
        if chunk.finish_reason is not None:
            open_ids.remove(chunk.request_id)
            ended[chunk.request_id] = chunk.finish_reason


def test_aborting_an_unknown_request_is_no_error(random_pair: tuple[Path, Path]) -> None:
    loop = open_loop(random_pair[0])
    loop.abort("nobody")

    assert not loop.has_work


def test_a_long_prompt_does_not_hold_up_those_who_decode(random_pair: tuple[Path, Path]) -> None:
    loop = open_loop(random_pair[0], sizes=Sizes(prefill_chunk_tokens=16))
    loop.submit(make_request([1], request_id="short", max_tokens=30, ignore_eos=True))
    loop.step()
    loop.submit(make_request([2] * 160, request_id="long", max_tokens=2, ignore_eos=True))
    steps = [[chunk.request_id for chunk in loop.step()] for _ in range(11)]

    assert all("short" in ids for ids in steps)
    assert [*[False] * 9, True, False] == ["long" in ids for ids in steps]


@pytest.mark.parametrize("kind", ["sync", "overlap"])
def test_a_failure_of_a_round_comes_out_of_step(random_pair: tuple[Path, Path], kind: Kind) -> None:
    """And the loop then refuses to go on, since its rows are in an unknown state."""
    loop = open_loop(random_pair[0], sizes=Sizes(kind=kind))
    loop.submit(make_request([1]))
    loop._scheduler._decoder.rows.tokens.resize_(0)

    if kind == "overlap":
        assert [] == loop.step()  # the first step only hands over
    with pytest.raises(IndexError):
        loop.step()
    with pytest.raises(EngineError, match="earlier step"):
        loop.step()
    loop.close()
    loop.close()


@pytest.fixture
def small_loop(random_pair: tuple[Path, Path]) -> Iterator[Loop]:
    loop = open_loop(random_pair[0], sizes=Sizes(max_kv_tokens=100, max_queued_requests=0))
    yield loop
    loop.close()


def test_what_never_fits_is_refused_by_name(small_loop: Loop) -> None:
    with pytest.raises(RequestError, match="KV budget of 100 tokens") as refused:
        small_loop.submit(make_request([1] * 50, max_tokens=51))

    assert "max_tokens" == refused.value.param
    assert not small_loop.has_work


def test_the_whole_context_can_be_used(pairs: dict[float, ConstructedPair]) -> None:
    """The last rounds of a full row overshoot into its slack, and its neighbour is not harmed."""
    pair = pairs[1.0]
    speculation = Speculation(draft_folder=pair.draft_folder, num_steps=8, topk=2)
    sizes = Sizes(kind="overlap", max_running_requests=2, prefill_chunk_tokens=512)
    loop = open_loop(pair.target_folder, speculation, sizes=sizes)
    prompt = list(range(260, 280)) * 50
    requests = [
        make_request(prompt, request_id="full", max_tokens=24),
        make_request([300], request_id="neighbour", max_tokens=200),
    ]
    outputs = run_requests(loop, requests)
    loop.close()

    assert [pair.expected_output(prompt, 24), pair.expected_output([300], 200)] == tokens(outputs)
