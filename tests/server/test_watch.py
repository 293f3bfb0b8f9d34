import asyncio
import time
from dataclasses import replace

from specserve.engine import EngineStats
from specserve.server.watch import AcceptanceWatch
from specserve.testing.script import count_up
from tests.server.live import MODEL, LiveServer, live_server, make_engine

ALWAYS_WRONG = count_up(start=ord("a"), stop=ord("z") + 1, run_length=1)


def stats(*, verify_rounds: int, accepted: int) -> EngineStats:
    nothing = asyncio.run(make_engine().stats())
    return replace(
        nothing, verify_rounds=verify_rounds, accepted=accepted, drafted=3 * verify_rounds
    )


def test_a_few_rounds_prove_nothing() -> None:
    assert None is AcceptanceWatch().look(stats(verify_rounds=199, accepted=0))


def test_two_hundred_rounds_without_acceptance_are_reported_once() -> None:
    acceptance = AcceptanceWatch()
    finding = acceptance.look(stats(verify_rounds=200, accepted=0))

    assert finding is not None
    assert (600, 0, 200, 1.0) == (
        finding.drafted,
        finding.accepted,
        finding.verify_rounds,
        finding.acceptance_length,
    )
    assert None is acceptance.look(stats(verify_rounds=400, accepted=0))


def test_only_the_rounds_since_the_last_look_count() -> None:
    acceptance = AcceptanceWatch()
    assert None is acceptance.look(stats(verify_rounds=1000, accepted=2000))
    finding = acceptance.look(stats(verify_rounds=1200, accepted=2001))

    assert finding is not None
    assert (1, 200) == (finding.accepted, finding.verify_rounds)


def test_a_draft_that_helped_meanwhile_may_be_reported_again() -> None:
    acceptance = AcceptanceWatch()
    found = [
        acceptance.look(stats(verify_rounds=rounds, accepted=accepted)) is not None
        for rounds, accepted in [(200, 0), (400, 400), (600, 400)]
    ]

    assert [True, False, True] == found


def wait_for_events(live: LiveServer) -> None:
    deadline = time.monotonic() + 5
    while not live.events and time.monotonic() < deadline:
        time.sleep(0.01)


def test_one_event_names_the_useless_draft() -> None:
    """H02: an always-wrong draft, 400 rounds."""
    with live_server(make_engine(ALWAYS_WRONG), watch_seconds=0.02) as live:
        client = live.openai()
        client.completions.create(model=MODEL, prompt="x", max_tokens=200)
        client.completions.create(model=MODEL, prompt="x", max_tokens=200)
        wait_for_events(live)
        time.sleep(0.1)
        metrics = live.get("/metrics").body.decode()

    [(kind, fields)] = live.events
    assert "warning.useless_draft" == kind
    assert "/models/tiny-draft" == fields["draft"]
    assert "specserve_accepted_total 0.0" in metrics
    assert "specserve_drafted_total 1200.0" in metrics


def test_a_useful_draft_is_no_news() -> None:
    with live_server(make_engine(), watch_seconds=0.02) as live:
        live.openai().completions.create(model=MODEL, prompt="x", max_tokens=400)
        live.openai().completions.create(model=MODEL, prompt="x", max_tokens=400)
        time.sleep(0.1)

    assert [] == live.events


def test_a_worker_that_dies_unnoticed_fails_the_server() -> None:
    with live_server(make_engine(), watch_seconds=0.02) as live:
        live.call(lambda: live.engine.die("killed by signal 9"))
        deadline = time.monotonic() + 5
        while live.get("/server_info").json["status"] != "failed":
            assert time.monotonic() < deadline
            time.sleep(0.01)

        assert "killed by signal 9" in live.post("/v1/completions", {}).error["message"]


def test_every_look_is_a_sample_of_the_history() -> None:
    with live_server(make_engine(), watch_seconds=0.02) as live:
        live.openai().completions.create(model=MODEL, prompt="x", max_tokens=30)
        time.sleep(0.1)
        samples = live.call(lambda: live.history.samples(0))

    assert (30, 0) == (samples[-1].emitted, samples[-1].running)
    assert len(samples) >= 3
