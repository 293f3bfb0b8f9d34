import math

import pytest

from specserve.replay.cells import WrongCellError, finite, share, whole
from specserve.replay.records import Record


@pytest.mark.parametrize(("cell", "expected"), [(7, 7), (7.0, 7), (0, 0)])
def test_a_count_is_whole(cell: float, expected: int) -> None:
    assert expected == whole(Record(1, {"n": cell}), "n", 0)


@pytest.mark.parametrize("cell", [-1, 2.5, math.nan, math.inf, "3", None, True, [3]])
def test_what_is_no_count_is_refused(cell: object) -> None:
    with pytest.raises(WrongCellError, match=r"^n a"):
        whole(Record(1, {"n": cell}), "n", 0)


def test_a_time_may_be_any_finite_number() -> None:
    assert [-3.5, 0.0] == [finite(Record(1, {"time": cell}), "time") for cell in (-3.5, 0)]


def test_a_percentage_is_no_share_but_says_which() -> None:
    with pytest.raises(WrongCellError) as caught:
        share("acceptance", 60)

    assert "write it as a share: acceptance=0.6" == caught.value.fix
