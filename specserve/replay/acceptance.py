"""The ways in which people write down acceptance, as the chance of each position."""

from collections.abc import Sequence
from itertools import pairwise


def by_chance(chance: float, positions: int) -> tuple[float, ...]:
    """Every draft token is accepted with `chance` if the one before it was: p, p², p³ …"""
    return tuple(chance ** (position + 1) for position in range(positions))


def by_rate(rate: float, num_steps: int, positions: int) -> tuple[float, ...]:
    """`rate` of the tokens that rounds of `num_steps` drafted were accepted (accepted / drafted).

    How they spread over the positions is not known from that; the same chance for each, given the
    one before, is assumed.
    """
    low, high = 0.0, 1.0
    for _ in range(53):  # the mean of p … p^k grows with p: halve until a float cannot tell
        middle = (low + high) / 2
        if sum(by_chance(middle, num_steps)) / num_steps < rate:
            low = middle
        else:
            high = middle
    return by_chance(high, positions)


def falls(acceptance: Sequence[float]) -> bool:
    """True for chances of positions: within 0 … 1, and none above the one before."""
    bounded = [1.0, *acceptance, 0.0]
    return all(a >= b for a, b in pairwise(bounded))
