"""GET and PUT /v1/policy: read and change the policy at run time."""

from dataclasses import asdict
from typing import Any

from fastapi import APIRouter, Request, Response

from specserve.engine import PolicyState
from specserve.errors import ConfigError
from specserve.server.body import read_json_object
from specserve.server.context import Context
from specserve.server.error_response import error_body, json_response
from specserve.server.policy_change import parse_change
from specserve.server.policy_control import Audit
from specserve.server.policy_view import policy_view


def policy_routes(context: Context) -> APIRouter:
    """Both answer with the version as ETag; a PUT with If-Match changes that version only."""
    router = APIRouter()

    @router.get("/v1/policy")
    async def read_policy() -> Response:
        stats = await context.state.serving().engine.stats()
        return _answer(stats.policy, context)

    @router.put("/v1/policy")
    async def change_policy(request: Request) -> Response:
        engine = context.state.serving().engine
        body = await read_json_object(request, context.config.max_body_bytes)
        audit = Audit(
            client=request.client.host if request.client else None,
            request_id=request.state.request_id,
            asked=body,
        )
        try:
            change = parse_change(body)
            state = await context.control.change(engine, change, audit, seen=_seen(request))
        except ConfigError as error:
            return _refusal(error)
        return _answer(state, context)

    return router


def _seen(request: Request) -> str | None:
    """The version that the client has seen; None where any will do."""
    tag = request.headers.get("if-match", "*").strip()
    return None if tag == "*" else tag.strip('"')


def _answer(state: PolicyState, context: Context) -> Response:
    control = context.control
    view = policy_view(state, control, context.plan)
    return json_response(view, headers={"etag": f'"{control.version}"'})


def _refusal(error: ConfigError) -> Response:
    """400 with every problem, in the words of the command line."""
    param = error.problems[0].key if error.problems else None
    body: dict[str, Any] = error_body(str(error), status=400, param=param)
    body["error"]["problems"] = [asdict(problem) for problem in error.problems]
    return json_response(body, 400)
