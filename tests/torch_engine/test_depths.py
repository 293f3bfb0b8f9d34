"""Rounds of changing depth: the policy changes its mind, the output does not."""

from collections import Counter
from pathlib import Path

import pytest

from specserve.config.policy import (
    AcceptancePolicy,
    Bounds,
    CostModelPolicy,
    DepthSchedulePolicy,
    DepthStep,
    PolicyConfig,
    WhileOff,
)
from specserve.engine import GenerationRequest
from specserve.testing.calibrations import make_calibration
from specserve.testing.checkpoints import write_draft, write_target
from specserve.testing.constructed import ConstructedPair, construct_pair
from specserve.testing.loops import Sizes, Speculation, make_request, open_loop, run_requests
from specserve.torch_engine.loop import Loop

NUM_STEPS = 4
NO_BOUNDS = Bounds(schedule=[], disable_above=None)


def schedule(while_off: WhileOff) -> DepthSchedulePolicy:
    """Another depth with every request that comes or goes."""
    lines = [(1, 4), (2, 1), (3, 0), (4, 3), (5, 2)]
    return DepthSchedulePolicy(
        kind="depth_schedule",
        schedule=[DepthStep(up_to=up_to, num_steps=depth) for up_to, depth in lines],
        hysteresis=0,
        min_dwell_rounds=2,
        while_off=while_off,
    )


def acceptance(while_off: WhileOff) -> AcceptancePolicy:
    """Learns within a round or two, and looks deeper as often as it can."""
    return AcceptancePolicy(
        kind="acceptance",
        min_acceptance=0.6,
        margin=0.05,
        window_rounds=1,
        explore_every_rounds=2,
        bounds=Bounds(schedule=[DepthStep(up_to=4, num_steps=4)], disable_above=5),
        min_dwell_rounds=2,
        while_off=while_off,
    )


def cost_model(while_off: WhileOff) -> CostModelPolicy:
    """The made-up round times let one request draft deep, and six hardly."""
    return CostModelPolicy(
        kind="cost_model",
        calibration="made up",
        margin=0.02,
        max_inter_token_ms=None,
        window_rounds=2,
        explore_every_rounds=3,
        bounds=NO_BOUNDS,
        min_dwell_rounds=2,
        while_off=while_off,
    )


CALIBRATION = make_calibration(
    batch_sizes=[1, 6],
    round_seconds={0: [10, 10], 1: [11.5, 14], 2: [13, 19], 3: [14, 24], 4: [15, 30]},
    acceptance=[0.7, 0.5, 0.35, 0.25],
)


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> ConstructedPair:
    """Needs no draft state, and is right with p = 0.7 a step."""
    return construct_pair(tmp_path_factory.mktemp("pair"), p=0.7)


@pytest.fixture(scope="module")
def random_pair(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("random")
    target = write_target(folder / "target", architecture="llama")
    return target, write_draft(folder / "draft", target_folder=target)


def open_with(
    target: Path, draft: Path, policy: PolicyConfig, while_off: WhileOff, topk: int, kind: str
) -> Loop:
    return open_loop(
        target,
        Speculation(draft_folder=draft, num_steps=NUM_STEPS, topk=topk, while_off=while_off),
        policy=policy,
        calibration=CALIBRATION,
        sizes=Sizes(kind="overlap" if kind == "overlap" else "sync", prefill_chunk_tokens=16),
    )


def requests() -> list[GenerationRequest]:
    """Six of different lengths: the number of running decodes grows, then falls."""
    return [
        make_request([300 + i] * (1 + 9 * i), request_id=str(i), max_tokens=16 + 14 * i)
        for i in range(6)
    ]


def run_counted(loop: Loop) -> tuple[list[tuple[int, ...]], Counter[int]]:
    """Each request's tokens, and how many steps had which depth."""
    taken: Counter[int] = Counter()
    tokens: dict[str, tuple[int, ...]] = {}
    for request in requests():
        loop.submit(request)
    while loop.has_work:
        for chunk in loop.step():
            tokens[chunk.request_id] = tokens.get(chunk.request_id, ()) + chunk.token_ids
        taken[loop.policy_state().num_steps] += 1
    loop.close()
    return [tokens[str(i)] for i in range(6)], taken


@pytest.mark.parametrize(
    ("while_off", "kind"), [("warm", "overlap"), ("skip", "sync"), ("refill", "overlap")]
)
@pytest.mark.parametrize("topk", [1, 3])
@pytest.mark.parametrize("make", [schedule, acceptance, cost_model])
def test_greedy_output_does_not_depend_on_the_depth(
    pair: ConstructedPair, make: type, while_off: WhileOff, topk: int, kind: str
) -> None:
    loop = open_with(pair.target_folder, pair.draft_folder, make(while_off), while_off, topk, kind)

    outputs, taken = run_counted(loop)

    expected = [pair.expected_output(one.prompt_token_ids, one.max_tokens) for one in requests()]
    assert [tuple(tokens) for tokens in expected] == outputs
    assert len([depth for depth in taken if depth]) >= 2
    assert loop.stats().policy.switches >= 4


@pytest.mark.parametrize("topk", [1, 2])
def test_nor_does_that_of_a_pair_that_is_hardly_ever_right(
    random_pair: tuple[Path, Path], topk: int
) -> None:
    plain = [output.token_ids for output in run_requests(open_loop(random_pair[0]), requests())]

    loop = open_with(*random_pair, schedule("refill"), "refill", topk, "overlap")
    outputs, taken = run_counted(loop)

    assert [tuple(tokens) for tokens in plain] == outputs
    assert {0, 1, 2, 3, 4} == set(taken)


def test_rounds_are_as_deep_as_the_policy_says(pair: ConstructedPair) -> None:
    """Two requests: every round is one draft pass, and drafts one token for each."""
    loop = open_with(pair.target_folder, pair.draft_folder, schedule("skip"), "skip", 1, "sync")
    for i in range(2):
        loop.submit(make_request([300 + i], request_id=str(i), max_tokens=400))
    for _ in range(12):
        loop.step()
    before = loop.stats()
    for _ in range(10):
        loop.step()
    after = loop.stats()

    assert 1 == after.policy.num_steps
    assert 10 == after.draft_calls - before.draft_calls == after.verify_calls - before.verify_calls
    assert 20 == after.drafted - before.drafted
    assert before.accepted_by_position[1:] == after.accepted_by_position[1:]


def test_the_cost_model_learns_from_what_the_engine_counts(pair: ConstructedPair) -> None:
    """The file promises a draft that is never wrong, which would be worth three plain rounds."""
    boastful = make_calibration(
        batch_sizes=[1], round_seconds={0: [0.01], 4: [0.03]}, acceptance=[1.0] * 4
    )
    policy = cost_model("skip").model_copy(update={"explore_every_rounds": 0})
    loop = open_loop(
        pair.target_folder,
        Speculation(draft_folder=pair.draft_folder, num_steps=NUM_STEPS),
        policy=policy,
        calibration=boastful,
    )
    loop.submit(make_request([300], max_tokens=200))
    loop.step()
    first = loop.policy_state()
    while loop.has_work:
        loop.step()
    last = loop.policy_state()

    assert (4, 0) == (first.num_steps, last.num_steps)
    assert "num_steps=4 is expected to give 167 tokens/s, num_steps=0 100" in first.reason
    assert "num_steps=0 is expected to give 100 tokens/s" in last.reason
