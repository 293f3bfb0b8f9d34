from collections.abc import Iterator

import pytest
from prometheus_client.parser import text_string_to_metric_families

from tests.server.live import MODEL, LiveServer, live_server, make_engine, make_plan, server_config


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    with live_server(make_engine(), config=server_config(api_key="secret")) as server:
        yield server


def get(live: LiveServer, path: str) -> str:
    answer = live.get(path, authorization="Bearer secret")

    assert 200 == answer.status
    return answer.body.decode()


def scrape(live: LiveServer) -> dict[str, float]:
    families = text_string_to_metric_families(get(live, "/metrics"))
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for family in families
        for sample in family.samples
    }


def test_counters_grow_by_what_was_answered_and_never_shrink(live: LiveServer) -> None:
    before = scrape(live)
    answer = live.openai("secret").completions.create(model=MODEL, prompt="x", max_tokens=9)
    after = scrape(live)
    counters = [name for name in before if name.endswith("_total")]

    assert answer.usage is not None
    assert 9 == answer.usage.completion_tokens
    assert 9 == after["specserve_emitted_total"] - before["specserve_emitted_total"]
    assert [] == [name for name in counters if after[name] < before[name]]


def test_a_chunk_of_several_tokens_counts_them_all(live: LiveServer) -> None:
    """F06: runs of three tokens; the six after the first run have a time each."""
    before = scrape(live)["specserve_inter_token_seconds_count"]
    live.openai("secret").completions.create(model=MODEL, prompt="x", max_tokens=9)

    assert 6 == scrape(live)["specserve_inter_token_seconds_count"] - before


def test_server_info_tells_the_plan_and_not_the_key(live: LiveServer) -> None:
    answer = live.get("/server_info", authorization="Bearer secret")

    assert make_plan().model_dump(mode="json") == answer.json["plan"]
    assert "***" == answer.json["server"]["api_key"]
    assert b"secret" not in answer.body
    assert {"torch": "2.13.0"} == answer.json["versions"]
    assert "always" == answer.json["stats"]["policy"]["policy"]["kind"]


def test_a_dead_worker_is_told_by_the_metrics(live: LiveServer) -> None:
    with live_server(make_engine()) as dying:
        dying.call(lambda: dying.engine.die("killed"))
        metrics = dying.get("/metrics").body.decode()
        info = dying.get("/server_info").json

    assert "specserve_worker_up 0.0" in metrics
    assert "specserve_drafted_total" not in metrics
    assert info["stats"] is None


def test_a_starting_server_lists_no_model_and_has_metrics() -> None:
    with live_server(make_engine(), ready=False) as starting:
        assert 503 == starting.get("/v1/models").status
        assert 503 == starting.get(f"/v1/models/{MODEL}").status
        assert 'specserve_status{status="starting"} 1.0' in starting.get("/metrics").body.decode()
        assert "starting" == starting.get("/server_info").json["status"]


def test_another_model_is_not_found(live: LiveServer) -> None:
    answer = live.get("/v1/models/meta/other", authorization="Bearer secret")

    assert 404 == answer.status
    assert ("model", "model_not_found") == (answer.error["param"], answer.error["code"])
