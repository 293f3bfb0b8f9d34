import pytest
from pydantic import ValidationError

from specserve.calibration.table import Calibration
from specserve.testing.calibrations import make_calibration


def test_acceptance_is_the_share_of_what_was_verified() -> None:
    assert (0.7, 0.5, 0.35) == make_calibration().acceptance


def test_a_table_without_drafting_is_one_too() -> None:
    table = make_calibration(batch_sizes=[1], round_seconds={0: [0.01]}, acceptance=[])

    assert () == table.acceptance


def test_it_survives_its_file() -> None:
    table = make_calibration()

    assert table == Calibration.model_validate_json(table.model_dump_json())


@pytest.mark.parametrize(
    ("batch_sizes", "round_seconds", "acceptance", "message"),
    [
        ([4, 1], {0: [1, 1]}, [], r"batch_sizes=\[4, 1\]: expected increasing"),
        ([4, 4], {0: [1, 1]}, [], r"batch_sizes=\[4, 4\]: expected increasing"),
        ([0, 4], {0: [1, 1]}, [], r"batch_sizes=\[0, 4\].*the first at least 1"),
        ([], {0: []}, [], r"batch_sizes=\[\]"),
        ([1], {1: [1]}, [0.5], r"depths\[\]\.num_steps=\[1\].*the first 0"),
        ([1], {}, [], r"depths\[\]\.num_steps=\[\]"),
        ([1, 2], {0: [1]}, [], r"depths\[0\]\.round_seconds=\[1\.0\]: expected 2 times"),
        ([1, 2], {0: [1, 1], 1: [1, 0]}, [0.5], r"depths\[1\]\.round_seconds=.*above 0"),
        ([1, 2], {0: [-1, 1]}, [], r"depths\[0\]\.round_seconds=.*above 0"),
        ([1], {0: [1], 2: [1]}, [0.5], r"accepted_by_position=\[500\]: expected 2 counts"),
        ([1], {0: [1], 2: [1]}, [0.5, 0.6], r"accepted_by_position=\[500, 600\].*never grow"),
        ([1], {0: [1], 1: [1]}, [1.5], r"accepted_by_position=\[1500\].*verified=1000"),
        ([1], {0: [1], 1: [1]}, [-0.5], r"accepted_by_position=\[-500\].*down to 0"),
    ],
)
def test_what_is_no_table_is_refused(
    batch_sizes: list[int],
    round_seconds: dict[int, list[float]],
    acceptance: list[float],
    message: str,
) -> None:
    with pytest.raises(ValidationError, match=message):
        make_calibration(
            batch_sizes=batch_sizes, round_seconds=round_seconds, acceptance=acceptance
        )
