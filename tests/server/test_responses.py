import msgspec

from specserve.engine import RequestCounters
from specserve.server.responses import ChatDelta, Completion, make_usage, speculation_record


def counters(*, accepted: int, verify_rounds: int) -> RequestCounters:
    return RequestCounters(
        drafted=3 * verify_rounds,
        accepted=accepted,
        verify_rounds=verify_rounds,
        plain_steps=1,
        emitted=accepted + verify_rounds + 1,
    )


def test_acceptance_length_counts_the_bonus_token_over_all_choices() -> None:
    record = speculation_record(
        [counters(accepted=6, verify_rounds=2), counters(accepted=0, verify_rounds=2)]
    )

    assert (12, 6, 4, 2, 2.5) == (
        record.drafted,
        record.accepted,
        record.verify_rounds,
        record.plain_steps,
        record.acceptance_length,
    )


def test_nothing_verified_has_no_acceptance_length() -> None:
    assert None is speculation_record([counters(accepted=0, verify_rounds=0)]).acceptance_length


def test_the_total_is_the_sum() -> None:
    assert 7 == make_usage(3, 4).total_tokens


def test_fields_that_were_not_asked_for_are_absent() -> None:
    """Chunks have no `usage` unless include_usage was set; then it is null until the end."""
    chunk = {"id": "x", "object": "text_completion", "created": 1, "model": "m", "choices": []}
    absent = Completion(id="x", created=1, model="m", choices=[])
    null = Completion(id="x", created=1, model="m", choices=[], usage=None)

    assert chunk == msgspec.to_builtins(absent)
    assert {**chunk, "usage": None} == msgspec.to_builtins(null)
    assert {"content": "a"} == msgspec.to_builtins(ChatDelta(content="a"))
