"""The listening socket, made before anything is built: a port in use is known at once."""

import errno
import socket

from specserve.config.server import ServerConfig
from specserve.errors import ConfigError, Problem
from specserve.rule_ids import RuleId


def bind(server: ServerConfig) -> socket.socket:
    """A listening socket. Raises ConfigError naming server.host or server.port."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            server.host, server.port, type=socket.SOCK_STREAM
        )[0]
    except OSError as error:
        raise ConfigError([_host_problem(server, error)]) from error
    listener = socket.socket(family, kind, protocol)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)
        listener.listen(512)  # bound is not enough: two sockets that only bind may share a port
    except OSError as error:
        listener.close()
        raise ConfigError([_address_problem(server, error)]) from error
    return listener


def url(listener: socket.socket) -> str:
    """Where a client on this machine finds the server."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"


def _address_problem(server: ServerConfig, error: OSError) -> Problem:
    if error.errno == errno.EADDRNOTAVAIL:
        return _host_problem(server, error)
    return Problem(
        rule=RuleId.PORT_TAKEN,
        key="server.port",
        value=server.port,
        expected=f"a port that this process may bind on {server.host} ({error.strerror})",
        fix="stop what uses it, or set server.port=0 to take a free one",
    )


def _host_problem(server: ServerConfig, error: OSError) -> Problem:
    return Problem(
        rule=RuleId.WRONG_HOST,
        key="server.host",
        value=server.host,
        expected=f"an address of this machine ({error.strerror})",
        fix="set server.host=127.0.0.1, or server.host=0.0.0.0 for every interface",
    )
