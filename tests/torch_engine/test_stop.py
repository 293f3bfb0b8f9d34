import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.torch_engine.stop import Trim, trim_run

STOP = 99


@pytest.mark.parametrize(
    ("run", "num_emitted", "max_tokens", "expected"),
    [
        ([10, 11, STOP, 20, 21, 22], 0, 5, Trim(3, "stop")),
        ([10, 11, 12, 20, 21, STOP], 0, 5, Trim(5, "length")),
        ([10, 11, 12, 20, STOP], 0, 5, Trim(5, "stop")),
        ([STOP, 20, 21], 8, 10, Trim(1, "stop")),
        ([20, 21, STOP], 8, 10, Trim(2, "length")),
        ([20, 21], 0, 5, Trim(2, None)),
        ([STOP], 0, 1, Trim(1, "stop")),
    ],
)
def test_a_stop_within_the_budget_wins_and_one_beyond_it_is_a_length_finish(
    run: list[int], num_emitted: int, max_tokens: int, expected: Trim
) -> None:
    assert expected == trim_run(
        run, num_emitted=num_emitted, stop_ids={STOP}, max_tokens=max_tokens
    )


@given(
    tokens=st.lists(st.integers(0, 5), min_size=1, max_size=30),
    cuts=st.lists(st.integers(1, 5), min_size=30, max_size=30),
    max_tokens=st.integers(1, 30),
)
def test_the_end_does_not_depend_on_how_tokens_come_in_runs(
    tokens: list[int], cuts: list[int], max_tokens: int
) -> None:
    def emitted(lengths: list[int]) -> tuple[list[int], str | None]:
        kept: list[int] = []
        rest = tokens
        for length in lengths:
            run, rest = rest[:length], rest[length:]
            if not run:
                break
            trim = trim_run(run, num_emitted=len(kept), stop_ids={0}, max_tokens=max_tokens)
            kept += run[: trim.num_kept]
            if trim.ending:
                return kept, trim.ending
        return kept, None

    assert emitted([1] * len(tokens)) == emitted(cuts)
