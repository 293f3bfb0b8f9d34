from specserve.replay.trace import Row, Span, hold, with_acceptance


def row(time: float, running: int, acceptance: tuple[float, ...] = (0.5,)) -> Row:
    return Row(time=time, running_decodes=running, acceptance=acceptance)


def test_a_row_holds_until_the_next_and_the_last_one_ends_the_trace() -> None:
    trace = hold([row(100, 3), row(101, 5), row(104, 9)], "here")

    assert (
        Span(begin=0, end=1, running_decodes=3, acceptance=(0.5,)),
        Span(begin=1, end=4, running_decodes=5, acceptance=(0.5,)),
    ) == trace.spans
    assert (4, 5, "here") == (trace.seconds, trace.peak, trace.source)


def test_rows_that_change_nothing_are_merged() -> None:
    trace = hold([row(0, 3), row(1, 3), row(2, 3, (0.4,)), row(3, 3, (0.4,)), row(5, 3)], "here")

    assert [(0, 2), (2, 5)] == [(span.begin, span.end) for span in trace.spans]


def test_acceptance_can_be_set_throughout() -> None:
    trace = with_acceptance(hold([row(0, 3), row(1, 5), row(2, 0)], "here"), (0.9, 0.8))

    assert [(3, (0.9, 0.8)), (5, (0.9, 0.8))] == [
        (span.running_decodes, span.acceptance) for span in trace.spans
    ]
