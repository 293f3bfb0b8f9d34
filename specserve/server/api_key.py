"""The API key: demanded for everything but the probes and the dashboard's empty page."""

import hmac

from starlette.types import ASGIApp, Receive, Scope, Send

from specserve.errors import RequestError
from specserve.server.dashboard_routes import page_parts

OPEN_PATHS = frozenset({"/health", "/ready", *page_parts()})


class ApiKey:
    """ASGI middleware that refuses (401) whoever does not bear the key, before a body is read."""

    def __init__(self, app: ASGIApp, key: str) -> None:
        self._app = app
        self._expected = b"Bearer " + key.encode()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request (ASGI)."""
        if scope["type"] == "http" and scope["path"] not in OPEN_PATHS:
            given = dict(scope["headers"]).get(b"authorization", b"")
            if not hmac.compare_digest(given, self._expected):  # its time tells nothing
                message = "no or wrong API key; send the header 'Authorization: Bearer KEY'"
                raise RequestError(message, param=None, status=401)
        await self._app(scope, receive, send)
