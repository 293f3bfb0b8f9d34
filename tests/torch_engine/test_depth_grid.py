"""Every depth and width says what plain greedy decoding says, whatever the draft is worth.

The whole grid of num_steps 1 to 8 and topk 1 to 4, against `transformers`.
"""

from pathlib import Path
from typing import Literal

import pytest

from specserve.engine import EngineStats
from specserve.testing.loops import Sizes, Speculation, make_request, open_loop, run_requests
from tests.torch_engine.greedy_scenes import (
    WORTHS,
    Greedy,
    Scene,
    Worth,
    num_cut_off,
    received,
    write_late_draft,
    write_scene,
)

Kind = Literal["overlap", "sync"]
PROMPT = (300, 310, 280)

every_depth = pytest.mark.parametrize("num_steps", range(1, 9))
every_width = pytest.mark.parametrize("topk", range(1, 5))


@pytest.fixture(scope="module")
def scenes(tmp_path_factory: pytest.TempPathFactory) -> dict[Worth, Scene]:
    folder = tmp_path_factory.mktemp("scenes")
    return {worth: write_scene(folder / worth, worth) for worth in WORTHS}


@every_depth
@every_width
@pytest.mark.parametrize("worth", WORTHS)
def test_speculation_changes_neither_the_tokens_nor_where_they_end(
    scenes: dict[Worth, Scene], worth: Worth, num_steps: int, topk: int
) -> None:
    """One request alone, then many that come and go in each other's midst.

    The schedulers take turns, so that each depth, width and draft meets both.
    """
    scene = scenes[worth]
    loop = open_loop(
        scene.target_folder,
        Speculation(draft_folder=scene.draft_folder, num_steps=num_steps, topk=topk),
        sizes=Sizes(
            kind="overlap" if (num_steps + topk + WORTHS.index(worth)) % 2 else "sync",
            max_running_requests=4,
            prefill_chunk_tokens=32,
        ),
        eos_token_ids=scene.eos_token_ids,
    )
    alone = run_requests(loop, scene.requests[2:3])
    together = run_requests(loop, scene.requests, every=2)
    stats = loop.stats()
    loop.close()

    assert scene.expected[2:3] == received(alone)
    assert scene.expected == received(together)
    assert stats.total_slots == stats.free_slots
    check_that_it_drafted(stats, num_steps, topk)
    check_acceptance(stats, worth, num_steps)


def check_that_it_drafted(stats: EngineStats, num_steps: int, topk: int) -> None:
    """In every round, so deep and so wide: a chain of steps, or all nodes that a tree holds."""
    num_drafted = topk + (num_steps - 1) * topk**2
    assert 0 < stats.verify_rounds
    assert 0 == stats.plain_steps
    assert num_drafted * stats.verify_rounds == stats.drafted
    assert num_steps * stats.verify_calls == stats.draft_calls
    assert num_steps == len(stats.accepted_by_position)


def check_acceptance(stats: EngineStats, worth: Worth, num_steps: int) -> None:
    """The draft is worth what the scene is named after."""
    length = stats.acceptance_length
    assert length is not None
    match worth:
        case "perfect":
            assert num_steps + 1 == length
        case "good":
            assert 1.5 < length < num_steps + 1
        case "unrelated":
            assert length < 1.1
        case "wrong":
            assert 1 == length


@pytest.fixture(scope="module")
def greedy(scenes: dict[Worth, Scene]) -> Greedy:
    return Greedy(scenes["perfect"].target_folder)


@pytest.fixture(scope="module")
def whole(greedy: Greedy) -> tuple[int, ...]:
    """What follows `PROMPT`, of which no token comes twice."""
    tokens = greedy.tokens(PROMPT, 40)
    assert 40 == len(set(tokens))
    return tokens


@every_depth
@every_width
@pytest.mark.parametrize("kind", ["sync", "overlap"])
def test_an_end_inside_an_accepted_run_is_the_end(
    scenes: dict[Worth, Scene],
    greedy: Greedy,
    whole: tuple[int, ...],
    num_steps: int,
    topk: int,
    kind: Kind,
) -> None:
    """The end token, a request's own, a stop string, the cap: each amid the third round's run."""
    place = num_steps // 2
    index = 1 + 2 * (num_steps + 1) + place
    last = whole[index]
    requests = [
        make_request(PROMPT, request_id="eos", max_tokens=40),
        make_request(PROMPT, request_id="own", stop_token_ids=(last,), ignore_eos=True),
        make_request(PROMPT, request_id="string", stop=(str(last), "never"), ignore_eos=True),
        make_request(PROMPT, request_id="cap", max_tokens=index + 1, ignore_eos=True),
    ]
    loop = open_loop(
        scenes["perfect"].target_folder,
        Speculation(draft_folder=scenes["perfect"].draft_folder, num_steps=num_steps, topk=topk),
        sizes=Sizes(kind=kind),
        eos_token_ids=(last,),
    )
    outputs = run_requests(loop, requests)
    (through,) = run_requests(loop, [make_request(PROMPT, max_tokens=40, ignore_eos=True)])
    loop.close()

    assert tuple(greedy.ended(whole, one, (last,)) for one in requests) == received(outputs)
    assert {whole[: index + 1]} == {output.token_ids for output in outputs}
    assert {num_steps - place} == {num_cut_off(output) for output in outputs}
    assert whole == through.token_ids


@pytest.fixture(scope="module")
def late_drafts(
    scenes: dict[Worth, Scene], tmp_path_factory: pytest.TempPathFactory
) -> dict[int, Path]:
    """By the rank of their right choice; else as the perfect one."""
    folder = tmp_path_factory.mktemp("late")
    perfect = scenes["perfect"].draft_folder
    return {rank: write_late_draft(folder / str(rank), perfect, rank) for rank in range(1, 6)}


@every_depth
@every_width
def test_a_tree_is_as_wide_as_it_says(
    scenes: dict[Worth, Scene],
    late_drafts: dict[int, Path],
    whole: tuple[int, ...],
    num_steps: int,
    topk: int,
) -> None:
    """It finds what is the draft's `topk`-th choice, every time, and never what comes after."""
    first_accepted = {}
    for rank in (topk, topk + 1):
        speculation = Speculation(draft_folder=late_drafts[rank], num_steps=num_steps, topk=topk)
        loop = open_loop(scenes["perfect"].target_folder, speculation)
        (output,) = run_requests(loop, [make_request(PROMPT, max_tokens=20)])
        stats = loop.stats()
        first_accepted[rank] = stats.accepted_by_position[0] / stats.verify_rounds

        assert whole[:20] == output.token_ids
    assert {topk: 1.0, topk + 1: 0.0} == first_accepted
