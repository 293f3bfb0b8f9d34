from typing import Any

import pytest

from specserve.replay.acceptance_columns import acceptance_reader, by_position
from specserve.replay.cells import WrongCellError
from specserve.replay.records import Record


def read(cells: dict[str, Any], positions: int = 3) -> tuple[float, ...] | None:
    reader = acceptance_reader(cells, positions)
    assert reader is not None
    return reader(Record(7, cells))


@pytest.mark.parametrize(
    ("cells", "expected"),
    [
        ({"acceptance": 0.5}, (0.5, 0.25, 0.125)),
        ({"acceptance": [0.8, 0.6, 0.4]}, (0.8, 0.6, 0.4)),
        ({"acceptance": [0.8, 0.6, 0.4, 0.2]}, (0.8, 0.6, 0.4)),
        ({"acceptance_2": 0.6, "acceptance_1": 0.8, "acceptance_3": 0.4}, (0.8, 0.6, 0.4)),
        ({"acceptance_rate": 0.5, "num_steps": 1}, (0.5, 0.25, 0.125)),
    ],
)
def test_every_form_gives_the_chance_of_each_position(
    cells: dict[str, Any], expected: tuple[float, ...]
) -> None:
    assert pytest.approx(expected) == read(cells)


@pytest.mark.parametrize(
    "cells",
    [
        {"acceptance": None},
        {"acceptance_1": None, "acceptance_2": None, "acceptance_3": None},
        {"acceptance_rate": None, "num_steps": 3},
        {"acceptance_rate": 0.0, "num_steps": 0},
    ],
)
def test_a_line_may_leave_it_open(cells: dict[str, Any]) -> None:
    """A plain round drafts nothing, so its rate says nothing."""
    assert read(cells) is None


@pytest.mark.parametrize(
    "names",
    [[], ["acceptence"], ["acceptance", "acceptance_1"], ["acceptance_rate"], ["acceptance_2"]],
)
def test_other_columns_say_nothing(names: list[str]) -> None:
    assert acceptance_reader(names, 3) is None


@pytest.mark.parametrize(
    ("chances", "words"),
    [
        ([0.5], "acceptance of 3 positions, found 1"),
        ([0.5, 0.6, 0.1], "never grow"),
        ([1.5, 0.6, 0.1], "acceptance_1 from 0 to 1, found 1.5"),
        ([0.5, "x", 0.1], "acceptance_2 a number, found 'x'"),
        ([0.5, None, 0.1], "acceptance_2 a number, found nothing"),
    ],
)
def test_what_are_no_chances_is_said(chances: list[object], words: str) -> None:
    with pytest.raises(WrongCellError, match=words):
        by_position(chances, 3)
