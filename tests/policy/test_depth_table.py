import pytest
from hypothesis import given
from hypothesis import strategies as st

from specserve.config.policy import DepthStep
from specserve.policy.depth_table import DepthTable
from tests.policy.loads import table, tables

TABLE = DepthTable(table((4, 3), (8, 1), (16, 2)))


@pytest.mark.parametrize(
    ("running", "depth"),
    [(0, 3), (3, 3), (4, 3), (5, 1), (8, 1), (9, 2), (15, 2), (16, 2), (17, 0), (1000, 0)],
)
def test_a_line_holds_up_to_its_end_inclusive(running: int, depth: int) -> None:
    assert depth == TABLE.depth(running)


@pytest.mark.parametrize(("running", "end"), [(4, 4), (5, 8), (16, 16), (17, None)])
def test_the_end_is_that_of_the_line(running: int, end: int | None) -> None:
    assert end == TABLE.end(running)


@pytest.mark.parametrize(
    ("running", "in_force", "depth"),
    [
        (17, 2, 0),  # going up a line's end is exact
        (16, 0, 0),
        (15, 0, 0),
        (14, 0, 2),  # 14 + 2 is still in the line of depth 2
        (4, 1, 1),
        (3, 1, 1),
        (2, 1, 3),
        (8, None, 1),
        (8, 3, 1),
    ],
)
def test_a_depth_stays_within_the_hysteresis_of_its_line(
    running: int, in_force: int | None, depth: int
) -> None:
    assert depth == TABLE.steady_depth(running, in_force, 2)


@given(
    lines=tables(), running=st.integers(0, 15), in_force=st.integers(0, 3), width=st.integers(0, 5)
)
def test_a_depth_stays_if_some_load_within_the_hysteresis_has_it(
    lines: list[DepthStep], running: int, in_force: int, width: int
) -> None:
    """The definition, word for word."""
    found = DepthTable(lines)
    near = {found.depth(running + further) for further in range(width + 1)}

    expected = in_force if in_force in near else found.depth(running)
    assert expected == found.steady_depth(running, in_force, width)


@given(lines=tables(), in_force=st.integers(0, 3), width=st.integers(0, 5))
def test_a_table_that_falls_stays_falling(
    lines: list[DepthStep], in_force: int, width: int
) -> None:
    """From the same depth, more running decodes never get a deeper round."""
    falling = sorted((line.num_steps for line in lines), reverse=True)
    found = DepthTable(
        table(*((line.up_to, depth) for line, depth in zip(lines, falling, strict=True)))
    )

    by_load = [found.steady_depth(running, in_force, width) for running in range(16)]
    assert sorted(by_load, reverse=True) == by_load
