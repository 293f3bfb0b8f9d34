from hypothesis import given
from hypothesis import strategies as st

from specserve.plan.rows import row_slack, row_tokens


@given(context=st.integers(1, 10**6), slack=st.integers(1, 256))
def test_a_row_holds_the_context_and_the_slack_in_eights(context: int, slack: int) -> None:
    tokens = row_tokens(context, slack)

    assert 0 == tokens % 8
    assert 0 <= tokens - (context + slack) < 8


def test_without_speculation_a_round_writes_one_token_and_one_is_scratch() -> None:
    assert 2 == row_slack(None)
