import asyncio
from dataclasses import fields, replace
from typing import Any

import pytest
from prometheus_client.metrics_core import Metric

from specserve.config.policy import OffPolicy
from specserve.engine import EngineStats
from specserve.server.engine_metrics import (
    control_metrics,
    engine_metrics,
    lifecycle_metrics,
    rule,
)
from specserve.server.policy_change import PinnedTo
from tests.server.live import make_engine


def stats(**totals: Any) -> EngineStats:  # noqa: ANN401
    """Totals of an engine that has done nothing, but for `totals`."""
    return replace(asyncio.run(make_engine(policy=OffPolicy(kind="off")).stats()), **totals)


def values(metrics: list[Metric]) -> dict[str, float]:
    return {
        sample.name + "".join(sample.labels.values()): sample.value
        for metric in metrics
        for sample in metric.samples
    }


def test_raw_counters_stand_beside_every_derived_figure() -> None:
    found = values([*engine_metrics(stats(drafted=30, accepted=15, verify_rounds=10))])

    assert (30, 15, 10) == (
        found["specserve_drafted_total"],
        found["specserve_accepted_total"],
        found["specserve_verify_rounds_total"],
    )
    assert 2.5 == found["specserve_acceptance_length"]
    assert 0.5 == found["specserve_acceptance_rate"]


def test_before_the_first_round_there_is_no_acceptance() -> None:
    found = values([*engine_metrics(stats())])

    assert not [name for name in found if name.startswith("specserve_acceptance")]


def test_exactly_one_mode_is_on_and_its_reason_is_told() -> None:
    found = values([*engine_metrics(stats())])

    assert 1 == found["specserve_modeplain"]
    assert 0 == found["specserve_modespeculative"]
    assert any(name.startswith("specserve_policy_infooffplain") for name in found)


def test_the_wasted_share_stands_beside_its_counters() -> None:
    found = values([*engine_metrics(stats(drafted=30, accepted=12))])

    assert (18, 0.6) == (
        found["specserve_wasted_draft_total"],
        found["specserve_wasted_draft_rate"],
    )


@pytest.mark.parametrize(
    ("wanted", "reason"),
    [
        ("N running decodes are more than disable_above=N", "12 running decodes are more than "
         "disable_above=8"),
        ("acceptance N is below N: num_steps=N", "acceptance 0.31 is below 4e-1: num_steps=2"),
        ("times of an H200 file", "times of an H200 file"),
    ],
)  # fmt: skip
def test_the_label_of_a_reason_is_the_same_whatever_its_numbers(wanted: str, reason: str) -> None:
    """A label with the number of running decodes would be a new series every round."""
    assert wanted == rule(reason)


@pytest.mark.parametrize("pinned", ["on", "off", None])
def test_a_pin_is_told(pinned: PinnedTo | None) -> None:
    found = values([*control_metrics(pinned)])

    assert {
        "specserve_pinnedon": pinned == "on",
        "specserve_pinnedoff": pinned == "off",
    } == found


def test_every_number_of_the_engine_is_exported() -> None:
    """A counter that is added to EngineStats must not be forgotten here."""
    names = {metric.name for metric in engine_metrics(stats(drafted=1, verify_rounds=1))}
    wanted = {f"specserve_{field.name}" for field in fields(EngineStats)}

    assert set() == wanted - names


def test_without_a_worker_the_lifecycle_is_still_told() -> None:
    found = values([*lifecycle_metrics("starting", worker_up=False)])

    assert {"specserve_statusstarting": 1, "specserve_worker_up": 0} == found
