"""GET /dashboard: one page that shows the run and changes its policy, and the data it asks for.

The page is public and empty; its data stand behind the API key like everything else.
"""

from dataclasses import asdict
from importlib.resources import files
from typing import Any

from fastapi import APIRouter, Response

import specserve
from specserve.errors import RequestError
from specserve.server.context import Context
from specserve.server.error_response import json_response
from specserve.server.operation_routes import stats_fields, status
from specserve.server.policy_form import policy_form
from specserve.server.policy_view import policy_view
from specserve.server.state import Draining, Failed, Starting

PAGE = "index.html"
_MEDIA_TYPES = {
    ".html": "text/html",
    ".css": "text/css",
    ".js": "text/javascript",
    ".svg": "image/svg+xml",
}
_HEADERS = {
    # Nothing from elsewhere, nothing inline, and no other page may frame this one.
    "content-security-policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; "
    "frame-ancestors 'none'",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "cache-control": "no-cache",  # a new version of the server brings a new page
}


def dashboard_routes(context: Context) -> APIRouter:
    """The page, its parts, and its data."""
    router = APIRouter()
    form = policy_form()
    for path, (content, media_type) in page_parts().items():
        router.add_api_route(path, _part(content, media_type), methods=["GET"])

    @router.get("/dashboard/form")
    async def read_form() -> Response:
        return json_response(form)

    @router.get("/dashboard/data")
    async def read_data(after: str = "0") -> Response:
        """What has come since the entry numbered `after`. Asks nothing of the worker."""
        if not (after.isascii() and after.isdigit()):
            raise RequestError(f"after: expected a number of an entry, not {after}", param="after")
        return json_response(dashboard_data(context, int(after)))

    return router


def page_parts() -> dict[str, tuple[bytes, str]]:
    """Path -> content and media type of the files that make the page."""
    parts = {}
    for file in (files(specserve) / "server/dashboard").iterdir():
        path = "/dashboard" if file.name == PAGE else f"/dashboard/{file.name}"
        suffix = "." + file.name.rpartition(".")[2]
        parts[path] = (file.read_bytes(), _MEDIA_TYPES[suffix])
    return parts


def dashboard_data(context: Context, after: int) -> dict[str, Any]:
    """The state of the run, and its samples and events with numbers above `after`."""
    history = context.history
    stats = history.stats
    return {
        "run": _run(context),
        "status": status(context),
        "status_detail": _status_detail(context),
        "last_number": history.last_number,
        "phases": [asdict(phase) for phase in history.phases],
        "samples": [asdict(sample) for sample in history.samples(after)],
        "events": [asdict(event) for event in history.events(after)],
        "stats": None if stats is None else stats_fields(stats),
        "policy": None
        if stats is None
        else policy_view(stats.policy, context.control, context.plan),
    }


def _part(content: bytes, media_type: str) -> Any:  # noqa: ANN401 - an endpoint has no type
    async def read() -> Response:
        return Response(content, media_type=media_type, headers=_HEADERS)

    return read


def _run(context: Context) -> dict[str, Any]:
    plan = context.plan
    return {
        "version": specserve.__version__,
        "created": context.created,
        "watch_seconds": context.watch_seconds,
        "model": plan.target.name,
        "engine": plan.engine,
        "device": plan.device,
        "scheduler": plan.scheduler.kind,
        "num_steps": plan.speculation.num_steps if plan.speculation else 0,
        "topk": plan.speculation.topk if plan.speculation else 0,
        "total_slots": plan.scheduler.max_kv_tokens,
        "max_running_requests": plan.scheduler.max_running_requests,
    }


def _status_detail(context: Context) -> str:
    match context.state.lifecycle:
        case Starting(phase=phase):
            return f"phase {phase}"
        case Failed(reason=reason):
            return reason
        case Draining():
            return "finishes what runs, takes no more"
        case _:
            return ""
