"""Prometheus metrics: the engine's own counters, and the times that clients see."""

from collections.abc import Iterable
from typing import Literal

from prometheus_client import CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.metrics_core import Metric

Outcome = Literal["finished", "refused", "disconnected", "failed"]
"""Answered; a 4xx or not ready; the client left; our fault."""

_GENERATION_PATHS = frozenset({"/v1/completions", "/v1/chat/completions"})
_LATENCY_BUCKETS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120)
_TOKEN_BUCKETS = (0.0005, 0.001, 0.002, 0.004, 0.008, 0.015, 0.03, 0.06, 0.12, 0.25, 0.5, 1, 2.5)


class Metrics:
    """What the HTTP side observes. One object a server; nothing is registered globally."""

    def __init__(self) -> None:
        self._registry = CollectorRegistry()
        self._requests = Counter(
            "specserve_requests",
            "Generation requests by how they ended",
            ["endpoint", "outcome"],
            registry=self._registry,
        )
        self._time_to_first_token = Histogram(
            "specserve_time_to_first_token_seconds",
            "From submitting a choice to its first token",
            buckets=_LATENCY_BUCKETS,
            registry=self._registry,
        )
        self._inter_token = Histogram(
            "specserve_inter_token_seconds",
            "Time between tokens: a round's time shared by the tokens that it emitted",
            buckets=_TOKEN_BUCKETS,
            registry=self._registry,
        )
        self._end_to_end = Histogram(
            "specserve_end_to_end_seconds",
            "Whole generation requests that finished",
            ["endpoint"],
            buckets=_LATENCY_BUCKETS,
            registry=self._registry,
        )

    def observe_tokens(self, num_tokens: int, seconds: float, *, first: bool) -> None:
        """A chunk came, `seconds` after the one before, or after the start if it is the first."""
        if first:
            self._time_to_first_token.observe(seconds)
            return
        for _ in range(num_tokens):
            self._inter_token.observe(seconds / num_tokens)

    def observe_request(self, path: str, outcome: Outcome, seconds: float) -> None:
        """A request ended. Paths that generate nothing are not counted."""
        if path not in _GENERATION_PATHS:
            return
        self._requests.labels(path, outcome).inc()
        if outcome == "finished":
            self._end_to_end.labels(path).observe(seconds)

    def render(self, engine_metrics: Iterable[Metric]) -> bytes:
        """Everything in Prometheus' text format."""
        return generate_latest(self._registry) + generate_latest(_Collected(engine_metrics))


class _Collected(CollectorRegistry):
    """Metrics that were collected already."""

    def __init__(self, metrics: Iterable[Metric]) -> None:
        super().__init__()
        self._collected = tuple(metrics)

    def collect(self) -> Iterable[Metric]:
        return self._collected
