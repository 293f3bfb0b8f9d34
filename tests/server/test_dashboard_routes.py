import re
import time

import pytest

from specserve.server.dashboard_routes import page_parts
from tests.server.live import MODEL, live_server, make_engine, server_config

PARTS = sorted(page_parts())
KEY = {"authorization": "Bearer secret"}


def test_the_page_and_its_parts_come_with_a_policy_that_forbids_everything_else() -> None:
    with live_server(make_engine()) as live:
        answers = [live.get(path) for path in PARTS]

    assert [200] * len(PARTS) == [answer.status for answer in answers]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'; ")
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert "nosniff" == answer.headers["x-content-type-options"]


@pytest.mark.parametrize("path", PARTS)
def test_no_part_of_the_page_names_another_host(path: str) -> None:
    """The namespace of SVG is a name, not an address."""
    text = page_parts()[path][0].decode().replace("http://www.w3.org/2000/svg", "")

    assert [] == re.findall(r"(?:https?:)?//[\w.-]+\.\w+", text)


@pytest.mark.parametrize("path", PARTS)
def test_the_page_is_open_and_shows_nothing_of_the_run(path: str) -> None:
    with live_server(make_engine(), config=server_config(api_key="secret")) as live:
        answer = live.get(path)

    assert 200 == answer.status
    assert MODEL.encode() not in answer.body


@pytest.mark.parametrize("path", ["/dashboard/data", "/dashboard/form", "/dashboard/nothing"])
def test_what_it_shows_stands_behind_the_key(path: str) -> None:
    with live_server(make_engine(), config=server_config(api_key="secret")) as live:
        assert 401 == live.get(path).status
        assert 401 != live.get(path, **KEY).status


def test_the_data_are_what_has_come_since_and_ask_nothing_of_the_worker() -> None:
    engine = make_engine()
    with live_server(engine, watch_seconds=0.02) as live:
        live.call(lambda: live.history.note_phase("load_target", "start", time.time(), 0.0, {}))
        while not (first := live.get("/dashboard/data").json)["samples"]:
            time.sleep(0.01)
        live.send("PUT", "/v1/policy", {"pin": "off"})
        time.sleep(0.1)
        live.call(lambda: engine.die("killed"))
        later = live.get(f"/dashboard/data?after={first['last_number']}").json

    assert ["load_target"] == [phase["phase"] for phase in first["phases"]]
    assert {"kind": "always"} == first["policy"]["policy"]
    assert ["policy.replaced"] == [event["kind"] for event in later["events"]]
    assert later["samples"]
    assert all(entry["number"] > first["last_number"] for entry in later["samples"])
    assert ("off", "off") == (later["policy"]["pinned"], later["policy"]["policy"]["kind"])
    assert later["run"]["created"] == first["run"]["created"]


def test_a_server_that_starts_has_phases_and_no_figures_yet() -> None:
    with live_server(make_engine(), ready=False, watch_seconds=0.02) as live:
        found = live.get("/dashboard/data").json

    assert ("starting", "phase load_target") == (found["status"], found["status_detail"])
    assert (None, None, []) == (found["stats"], found["policy"], found["samples"])


@pytest.mark.parametrize("after", ["-1", "x", "1e9"])
def test_a_number_that_is_none_is_refused(after: str) -> None:
    with live_server(make_engine()) as live:
        answer = live.get(f"/dashboard/data?after={after}")

    assert 400 == answer.status
    assert "after" == answer.error["param"]
