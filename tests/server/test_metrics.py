import pytest
from prometheus_client.parser import text_string_to_metric_families

from specserve.server.metrics import Metrics


def samples(metrics: Metrics) -> dict[str, float]:
    text = metrics.render(()).decode()
    return {
        sample.name + "".join(sorted(sample.labels.values())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
        if not sample.name.endswith("_bucket")
    }


def test_the_first_tokens_time_is_no_time_between_tokens() -> None:
    metrics = Metrics()
    metrics.observe_tokens(4, 0.5, first=True)
    for _ in range(9):
        metrics.observe_tokens(4, 0.04, first=False)
    found = samples(metrics)

    assert (1, 0.5) == (
        found["specserve_time_to_first_token_seconds_count"],
        found["specserve_time_to_first_token_seconds_sum"],
    )
    assert 36 == found["specserve_inter_token_seconds_count"]
    assert 0.36 == pytest.approx(found["specserve_inter_token_seconds_sum"])


def test_requests_count_by_how_they_ended() -> None:
    metrics = Metrics()
    metrics.observe_request("/v1/completions", "finished", 1.0)
    metrics.observe_request("/v1/completions", "refused", 1.0)
    found = samples(metrics)

    assert 1 == found["specserve_requests_total/v1/completionsfinished"]
    assert 1 == found["specserve_requests_total/v1/completionsrefused"]
    assert 1 == found["specserve_end_to_end_seconds_count/v1/completions"]


def test_a_path_that_a_client_made_up_makes_no_series() -> None:
    metrics = Metrics()
    metrics.observe_request("/v1/completions/x", "refused", 1.0)

    assert b"/v1/completions/x" not in metrics.render(())


def test_two_servers_share_nothing() -> None:
    first, second = Metrics(), Metrics()
    first.observe_request("/v1/completions", "finished", 1.0)

    assert b"/v1/completions" not in second.render(())
