"""An explanation for people, and as JSON."""

from collections.abc import Iterator
from dataclasses import asdict
from typing import Any

from specserve.config.policy import SwitchingPolicy
from specserve.explain_policy.explanation import EngineStep, Explanation

_MILLISECONDS = 1000


def report(explanation: Explanation) -> str:
    """The answer first, then why, then what follows from it."""
    return "\n".join(
        [_answer(explanation), *_why(explanation), *_engine(explanation), *_yields(explanation)]
    )


def document(explanation: Explanation) -> dict[str, Any]:
    """JSON values."""
    calibration = explanation.calibration
    return {
        "running_decodes": explanation.running_decodes,
        "acceptance": explanation.acceptance,
        "policy": explanation.report.config.policy.model_dump(),
        "planned_for": explanation.report.facts.source,
        "cuda_graph_batch_sizes": explanation.graph_sizes,
        "arrivals": [asdict(arrival) for arrival in explanation.arrivals],
        "steps": [asdict(step) for step in explanation.steps],
        "calibration": None if calibration is None else calibration.provenance.model_dump(),
        "yields": [asdict(one) for one in explanation.yields],
        "warnings": [*map(str, explanation.report.warnings), *_doubts(explanation)],
    }


def _answer(explanation: Explanation) -> str:
    kind = explanation.report.config.policy.kind
    few, many = explanation.arrivals
    running = explanation.running_decodes
    load = f"while {running} request{' decodes' if running == 1 else 's decode'}"
    if few.decision.num_steps == many.decision.num_steps:
        return f"{kind}: {_deed(few.decision.num_steps)} {load}"
    return (
        f"{kind}: {load}, {_deed(few.decision.num_steps)} if it did so before, "
        f"{_deed(many.decision.num_steps)} if the load comes from above"
    )


def _why(explanation: Explanation) -> Iterator[str]:
    few, many = explanation.arrivals
    if few.decision == many.decision:
        yield f"  why           {few.decision.reason}"
        return
    for arrival in explanation.arrivals:
        yield (
            f"  coming from   {arrival.coming_from}, {_state(arrival.from_depth)}: "
            f"{arrival.decision.reason}"
        )


def _engine(explanation: Explanation) -> Iterator[str]:
    for step in explanation.steps:
        yield f"  the engine    {_work(explanation, step)}"
        yield f"  CUDA graph    {_graph(explanation, step)}"
    if explanation.acceptance:
        chances = ", ".join(f"{chance:.2f}" for chance in explanation.acceptance)
        yield f"  acceptance    {chances} by position"
    for warning in (*explanation.report.warnings, *_doubts(explanation)):
        yield f"  warning       {warning}"


def _work(explanation: Explanation, step: EngineStep) -> str:
    policy = explanation.report.config.policy
    if step.num_steps == 0:
        state = ""
        if isinstance(policy, SwitchingPolicy):
            state = f"; the draft's state: while_off={policy.while_off}"
        return f"decodes plainly: 1 token per request, {step.tokens} in all{state}"
    return (
        f"drafts {step.num_steps} deep and verifies {step.tokens_per_request} tokens per request, "
        f"root included, {step.tokens} in all"
    )


def _graph(explanation: Explanation, step: EngineStep) -> str:
    if not explanation.graph_sizes:
        changes = explanation.report.plan.adjustments if explanation.report.plan else ()
        reasons = [one.reason for one in changes if one.key == "cuda_graph.batch_sizes"]
        return f"none: {'; '.join(reasons) or 'none is captured on this machine'}"
    if step.graph_requests is None:
        largest = max(explanation.graph_sizes)
        return f"none holds this batch (the largest is for {largest}): runs without a graph"
    padding = step.graph_requests - explanation.running_decodes
    padded = f"padded by {padding}, to " if padding else "of exactly "
    tokens = step.graph_requests * step.tokens_per_request
    return f"{padded}{_requests(step.graph_requests)}, {tokens} tokens"


def _doubts(explanation: Explanation) -> Iterator[str]:
    limit = explanation.report.config.scheduler.max_running_requests
    if explanation.running_decodes > limit:
        yield f"scheduler.max_running_requests={limit}: so many never decode at once"
    few, many = explanation.arrivals
    if few.decision.num_steps != many.decision.num_steps and many.coming_from > limit:
        yield f"scheduler.max_running_requests={limit}: it never comes from {many.coming_from}"
    if explanation.calibration is not None:
        largest = explanation.calibration.batch_sizes[-1]
        if explanation.running_decodes > largest:
            yield f"the calibration ends at {largest} running decodes: round times are extrapolated"


def _yields(explanation: Explanation) -> Iterator[str]:
    if not explanation.yields:
        yield "  expected      not known without a calibration and acceptance: --calibration FILE"
        return
    if explanation.calibration is not None:
        measured = explanation.calibration.provenance
        yield (
            f"  calibration   {measured.device}, engine={measured.engine}, {measured.target}, "
            f"{measured.date}"
        )
    best = max(explanation.yields, key=lambda one: one.tokens_per_second).num_steps
    chosen = {step.num_steps for step in explanation.steps}
    yield "  expected      num_steps  round ms  tokens/round  tokens/s  ms/token of a request"
    for one in explanation.yields:
        marks = [
            *(["best"] if one.num_steps == best else []),
            *(["chosen"] if one.num_steps in chosen else []),
        ]
        pace = _MILLISECONDS * one.round_seconds / one.tokens_per_request
        yield (
            f"                {one.num_steps:9}  {_MILLISECONDS * one.round_seconds:8.2f}  "
            f"{one.tokens_per_request:12.2f}  {one.tokens_per_second:8,.0f}  {pace:21.2f}  "
            f"{', '.join(marks)}"
        ).rstrip()


def _deed(num_steps: int) -> str:
    return f"drafts {_deep(num_steps)}" if num_steps else "decodes plainly"


def _state(num_steps: int) -> str:
    return f"num_steps={num_steps}" if num_steps else "off"


def _deep(num_steps: int) -> str:
    return f"{num_steps} step{'s' if num_steps > 1 else ''}"


def _requests(count: int) -> str:
    return f"{count} request{'s' if count > 1 else ''}"
