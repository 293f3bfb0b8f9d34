"""The main job, whole: one command, its supervisor, worker and server, and the official client.

A constructed pair says every token beforehand, so a load test under switching policies can check
every token; the shipped pair shows that speculation really happens and really changes no text.
The servers run on the CPU and on one thread, whatever the machine has.
"""

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from specserve.testing.constructed import ConstructedPair, construct_pair
from specserve.testing.constructed_tokenizer import token_text
from specserve.worker.ledger import read_ledger
from specserve.worker.phases import Phase
from tests.main_job import MainJob, main_job
from tests.main_job_load import (
    ALWAYS,
    NUM_CLIENTS,
    THRESHOLD,
    Ask,
    load,
    load_while_flipping,
    make_ask,
)
from tests.server.contract import CHECKS, Served, record

MAX_RUNNING = 8


@pytest.fixture(scope="module")
def pair(tmp_path_factory: pytest.TempPathFactory) -> ConstructedPair:
    return construct_pair(tmp_path_factory.mktemp("pair"), p=0.7)


@pytest.fixture(scope="module")
def constructed(
    pair: ConstructedPair, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[MainJob]:
    """The main job on the constructed pair, giving up speculation early."""
    with main_job(
        tmp_path_factory.mktemp("constructed"),
        f"model.path={pair.target_folder}",
        f"model.draft_path={pair.draft_folder}",
        f"scheduler.max_running_requests={MAX_RUNNING}",
        *(f"policy.{name}={value}" for name, value in THRESHOLD.items() if name != "kind"),
    ) as job:
        yield job


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MainJob]:
    """The main job as it comes: the pair that ships."""
    with main_job(tmp_path_factory.mktemp("demo")) as job:
        yield job


def assert_everything_is_given_back(job: MainJob) -> None:
    job.wait_until_idle()
    metrics = job.metrics()
    assert metrics["specserve_total_slots"] == metrics["specserve_free_slots"] > 0
    assert 0 == metrics["specserve_running"] == metrics["specserve_running_decodes"]
    assert 0 == metrics["specserve_queued"]


def test_the_threshold_switches_with_the_load_and_every_token_is_right(
    constructed: MainJob, pair: ConstructedPair
) -> None:
    """Eight short answers run plainly; the one that is much longer speculates in the end."""
    constructed.set_policy(THRESHOLD)
    before = constructed.metrics()
    asks = []
    for number in range(MAX_RUNNING):
        prompt, max_tokens = [300 + number], 400 if number == 0 else 60
        expected = pair.expected_output(prompt, max_tokens)
        asks.append([Ask(prompt, max_tokens, "".join(map(token_text, expected)))])

    asyncio.run(load(constructed, asks))

    after = constructed.metrics()
    grown = {name: after[name] - before[name] for name in after if name.endswith("_total")}
    assert grown["specserve_plain_steps_total"] > MAX_RUNNING
    assert grown["specserve_verify_rounds_total"] > 10
    assert grown["specserve_switches_total"] >= 2
    assert_everything_is_given_back(constructed)


def test_twelve_clients_get_every_token_right_while_the_policy_flips(
    constructed: MainJob, pair: ConstructedPair
) -> None:
    before = constructed.metrics()
    clients = [[make_ask(pair, client, turn) for turn in range(4)] for client in range(NUM_CLIENTS)]

    ends, flips = asyncio.run(load_while_flipping(constructed, clients))

    after = constructed.metrics()
    assert {"whole", "whole, stopped", "streamed", "streamed, stopped", "left"} == ends
    assert flips >= 12
    for name in ("verify_rounds", "plain_steps", "switches", "accepted"):
        assert after[f"specserve_{name}_total"] > before[f"specserve_{name}_total"], name
    assert_everything_is_given_back(constructed)


@pytest.mark.parametrize("check", CHECKS, ids=lambda check: check.__name__)
def test_the_main_job_keeps_every_promise_of_a_server(
    constructed: MainJob, check: Callable[[Served], None]
) -> None:
    constructed.set_policy(ALWAYS)

    check(constructed.served)


@pytest.mark.parametrize("sampling", [{"temperature": 0}, {"temperature": 0.8, "seed": 5}])
def test_speculation_changes_no_text_of_the_shipped_pair(
    demo: MainJob, sampling: dict[str, Any]
) -> None:
    fields = {"prompt": "def read_lines(path):\n", "max_tokens": 48, **sampling}

    plain = demo.served.complete(**fields, extra_body={"speculation": False})
    speculative = demo.served.complete(**fields)

    assert plain.choices[0].text == speculative.choices[0].text
    assert plain.choices[0].text.strip()
    assert 0 == record(plain)["drafted"]
    assert record(speculative)["accepted"] > 0
    assert record(speculative)["acceptance_length"] > 1
    assert demo.metrics()["specserve_accepted_total"] > 0


def test_an_int8_target_answers_and_its_run_records_all_seven_phases(tmp_path: Path) -> None:
    with main_job(tmp_path, "quantization=int8") as job:
        answer = job.served.complete()
        plan = json.loads((job.folder / "plan.json").read_text())

    assert answer.choices[0].text.strip()
    assert record(answer)["accepted"] > 0
    assert "int8" == plan["target"]["quantization"]
    records = read_ledger(job.folder / "ledger.jsonl")
    assert [(phase, 0) for phase in Phase] == [
        (each.phase, each.rank) for each in records if each.event == "start"
    ]
    ended = {each.phase: each.event for each in records if each.event != "start"}
    done = dict.fromkeys(Phase, "done")
    assert {**done, Phase.CUDA_GRAPHS: "skipped"} == ended
