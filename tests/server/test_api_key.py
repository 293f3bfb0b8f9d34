from collections.abc import Iterator

import pytest
from openai import AuthenticationError

from tests.server.live import MODEL, LiveServer, live_server, make_engine, server_config

KEY = "sécret"
CLOSED = [
    "/v1/models",
    "/metrics",
    "/server_info",
    "/v1/policy",
    "/v1/completions",
    "/dashboard/data",
    "/dashboard/form",
    "/nowhere",
]


@pytest.fixture(scope="module")
def live() -> Iterator[LiveServer]:
    with live_server(make_engine(), config=server_config(api_key=KEY)) as server:
        yield server


@pytest.mark.parametrize("path", CLOSED)
@pytest.mark.parametrize("given", [None, "Bearer wrong", "Bearer ", KEY, f"Basic {KEY}"])
def test_everything_else_demands_the_key(live: LiveServer, path: str, given: str | None) -> None:
    headers = {} if given is None else {"authorization": given.encode().decode("latin-1")}
    answer = live.get(path, **headers)

    assert 401 == answer.status
    assert "invalid_api_key" == answer.error["code"]
    assert "Bearer" == answer.headers["www-authenticate"]
    assert KEY not in answer.body.decode()


def test_the_probes_are_open(live: LiveServer) -> None:
    assert [200, 200] == [live.get(path).status for path in ("/health", "/ready")]


def test_a_change_of_the_policy_demands_it_too(live: LiveServer) -> None:
    answers = [
        live.send("PUT", "/v1/policy", {"pin": "off"}, **headers)
        for headers in ({}, {"authorization": f"Bearer {KEY}".encode().decode("latin-1")})
    ]

    assert [401, 200] == [answer.status for answer in answers]


def test_the_official_client_bears_the_key() -> None:
    with live_server(make_engine(), config=server_config(api_key="secret")) as live:
        assert [MODEL] == [model.id for model in live.openai("secret").models.list()]
        with pytest.raises(AuthenticationError):
            live.openai("other").models.list()


def test_the_key_is_demanded_before_a_body_is_read(live: LiveServer) -> None:
    assert 401 == live.post("/v1/completions", b"x" * 100_000).status
