from specserve.review.depths import Depth, LoadDepths
from specserve.review.plot import COLUMNS, depth_plot


def _loads(*runs: tuple[int, int, int]) -> LoadDepths:
    depths = [Depth(rising, falling) for count, rising, falling in runs for _ in range(count)]
    return LoadDepths(depths=tuple(depths), assumes="")


def test_a_column_is_a_load_and_a_digit_a_depth() -> None:
    assert [
        "running decodes  1   5",
        "before           33··",
        "after, rising    22·· ".rstrip() + "·",
        "after, falling   2····",
        "                 digit: num_steps, ·: plain, blank: not admitted",
    ] == depth_plot(_loads((2, 3, 3), (2, 0, 0)), _loads((1, 2, 2), (1, 2, 0), (3, 0, 0)))


def test_many_loads_are_spaced_by_their_logarithm() -> None:
    axis, before, after, _ = depth_plot(_loads((8, 3, 3), (4088, 0, 0)), _loads((4096, 1, 1)))

    assert "(logarithmic)" in axis
    assert axis.index("4096") + 4 == len(before) == len(after) == 17 + COLUMNS
    assert 17 == before.count("3")


def test_one_side_alone_is_plotted() -> None:
    assert ["after            3"] == depth_plot(None, _loads((1, 3, 3)))[1:-1]
    assert [] == depth_plot(None, None)
