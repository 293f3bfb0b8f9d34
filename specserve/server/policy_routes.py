"""GET and PUT /v1/policy: read and replace the policy at run time."""

from typing import Any

from fastapi import APIRouter, Request, Response
from pydantic import ValidationError

from specserve.config.policy import PolicyConfig
from specserve.config.problems import problems_of
from specserve.config.strict import StrictModel
from specserve.errors import ConfigError
from specserve.server.body import read_json_object
from specserve.server.context import Context
from specserve.server.error_response import error_body, json_response
from specserve.server.operation_routes import policy_fields


def policy_routes(context: Context) -> APIRouter:
    """The policy, whole: a PUT that leaves a field out is refused, not completed."""
    router = APIRouter()

    @router.get("/v1/policy")
    async def read_policy() -> Response:
        stats = await context.state.serving().engine.stats()
        return json_response(policy_fields(stats.policy))

    @router.put("/v1/policy")
    async def replace_policy(request: Request) -> Response:
        engine = context.state.serving().engine
        fields = await read_json_object(request, context.config.max_body_bytes)
        before = (await engine.stats()).policy.policy
        try:
            policy = _parse(fields)
            state = await engine.set_policy(policy)
        except ConfigError as error:
            return _refusal(error)
        context.record_event(
            "policy.replaced",
            {
                "before": before.model_dump(mode="json"),
                "after": policy.model_dump(mode="json"),
                "client": request.client.host if request.client else None,
            },
        )
        return json_response(policy_fields(state))

    return router


class _PolicySection(StrictModel):
    """The one section of a configuration that may change while it runs."""

    policy: PolicyConfig


def _parse(fields: dict[str, Any]) -> PolicyConfig:
    """Raises ConfigError with every problem, as a start with this policy would."""
    tree = {"policy": fields}
    try:
        return _PolicySection.model_validate(tree).policy
    except ValidationError as error:
        raise ConfigError(problems_of(error, tree)) from error


def _refusal(error: ConfigError) -> Response:
    """400 with every problem, in the words of the command line."""
    param = error.problems[0].key if error.problems else None
    body = error_body(str(error), status=400, param=param)
    body["error"]["problems"] = [
        {
            "key": problem.key,
            "value": problem.value,
            "expected": problem.expected,
            "fix": problem.fix,
        }
        for problem in error.problems
    ]
    return json_response(body, 400)
