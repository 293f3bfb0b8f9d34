import socket

import pytest

from specserve.config.server import ServerConfig
from specserve.errors import ConfigError
from specserve.serve.listener import bind, url


def _server(host: str, port: int) -> ServerConfig:
    return ServerConfig(host=host, port=port, api_key=None, max_body_bytes=1024, drain_seconds=1.0)


def test_port_0_takes_a_free_port_and_names_it() -> None:
    with bind(_server("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        assert port > 0
        assert f"http://127.0.0.1:{port}" == url(listener)
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            pass


def test_a_port_in_use_is_refused_by_name() -> None:
    with bind(_server("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]

        with pytest.raises(ConfigError, match=f"server.port={port}: .*in use") as caught:
            bind(_server("127.0.0.1", port))

    assert "server.port=0" in caught.value.problems[0].fix


def test_a_port_is_free_again_at_once_after_its_server_has_ended() -> None:
    """Connections that linger in TIME_WAIT must not delay a restart."""
    with bind(_server("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        with socket.create_connection(("127.0.0.1", port), timeout=5):
            accepted, _ = listener.accept()
            accepted.close()

    with bind(_server("127.0.0.1", port)) as again:
        assert port == again.getsockname()[1]


@pytest.mark.parametrize("host", ["192.0.2.1", "no such host.invalid", "::ffff:192.0.2.1"])
def test_an_address_that_is_not_here_is_refused_by_name(host: str) -> None:
    with pytest.raises(ConfigError) as caught:
        bind(_server(host, 0))

    assert ["server.host"] == [problem.key for problem in caught.value.problems]


def test_every_interface_is_shown_as_this_machine() -> None:
    with bind(_server("0.0.0.0", 0)) as listener:
        assert url(listener).startswith("http://127.0.0.1:")


@pytest.mark.skipif(not socket.has_dualstack_ipv6(), reason="no IPv6 here")
def test_an_ipv6_address_is_put_in_brackets() -> None:
    with bind(_server("::1", 0)) as listener:
        assert url(listener).startswith("http://[::1]:")
