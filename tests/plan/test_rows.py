from hypothesis import given
from hypothesis import strategies as st

from specserve.plan.rows import row_slack, row_tokens


@given(context=st.integers(1, 10**6), drafted=st.integers(1, 256))
def test_a_row_holds_the_context_two_rounds_and_a_scratch_slot_in_eights(
    context: int, drafted: int
) -> None:
    tokens = row_tokens(context, drafted)

    assert 0 == tokens % 8
    assert 0 <= tokens - (context + 2 * drafted + 1) < 8


def test_without_speculation_a_round_is_one_token() -> None:
    assert (3, 1024 + 8) == (row_slack(1), row_tokens(1024, 1))
