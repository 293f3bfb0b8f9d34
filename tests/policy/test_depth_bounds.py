import pytest

from specserve.policy.depth_bounds import DepthBounds
from tests.policy.loads import bounds


@pytest.mark.parametrize(("running", "limit"), [(4, 3), (5, 1), (6, 1), (7, 0), (8, 0)])
def test_the_tighter_bound_holds(running: int, limit: int) -> None:
    found = DepthBounds(bounds((4, 5), (8, 1), disable_above=6), max_num_steps=3)

    assert limit == found.limit(running)


def test_without_bounds_the_built_depth_is_the_limit() -> None:
    assert 3 == DepthBounds(bounds(), max_num_steps=3).limit(10_000)
