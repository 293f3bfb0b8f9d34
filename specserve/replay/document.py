"""A comparison as JSON: every figure of the text, and every switch."""

from typing import Any

from specserve.replay.comparison import Comparison, Replayed
from specserve.replay.outcome import Outcome

FORMAT = "specserve-replay-1"


def document(comparison: Comparison) -> dict[str, Any]:
    """JSON values. Times are seconds since the trace began, tokens are expected ones."""
    trace = comparison.trace
    return {
        "format": FORMAT,
        "load": {
            "source": trace.source,
            "seconds": trace.seconds,
            "spans": [
                {
                    "begin": span.begin,
                    "end": span.end,
                    "running_decodes": span.running_decodes,
                    "acceptance": list(span.acceptance),
                }
                for span in trace.spans
            ],
        },
        "calibration": {
            "path": comparison.calibration_path,
            "provenance": comparison.calibration.provenance.model_dump(),
        },
        "seed": comparison.seed,
        "best_policy": comparison.best.candidate.name,
        "best_static_num_steps": comparison.best_static,
        "policies": [_policy(comparison, one) for one in comparison.policies],
        "statics": [
            {"num_steps": depth, **_outcome(comparison, outcome)}
            for depth, outcome in comparison.statics.items()
        ],
        "oracle": _outcome(comparison, comparison.oracle),
    }


def _policy(comparison: Comparison, one: Replayed) -> dict[str, Any]:
    return {
        "name": one.candidate.name,
        "overrides": list(one.candidate.overrides),
        "policy": one.candidate.config.policy.model_dump(),
        **_outcome(comparison, one.outcome),
    }


def _outcome(comparison: Comparison, outcome: Outcome) -> dict[str, Any]:
    return {
        "rounds": outcome.rounds,
        "seconds": outcome.seconds,
        "tokens": outcome.tokens,
        "tokens_per_second": outcome.tokens_per_second,
        "share_of_oracle": comparison.of_oracle(outcome),
        "switches": len(outcome.switches),
        "by_depth": [
            {
                "num_steps": depth,
                "rounds": share.rounds,
                "seconds": share.seconds,
                "tokens": share.tokens,
            }
            for depth, share in outcome.by_depth.items()
        ],
        "stays": [
            {
                "begin": stay.begin,
                "running_decodes": stay.running_decodes,
                "num_steps": stay.num_steps,
                "reason": stay.reason,
            }
            for stay in outcome.stays
        ],
    }
