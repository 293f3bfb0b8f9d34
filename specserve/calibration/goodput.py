"""What a round yields: the token side of goodput (Liu et al., 2024, arXiv:2406.14066, section 4).

Goodput is the number of tokens that come out per second: expected tokens of a round over its time.
"""

from collections.abc import Sequence
from itertools import accumulate


def expected_tokens(acceptance: Sequence[float]) -> list[float]:
    """Tokens that a request gets from a round of each depth 0 … len(`acceptance`).

    `acceptance[i]` is the chance that draft token i + 1 is accepted; the bonus token is certain.
    """
    return list(accumulate(acceptance, initial=1.0))
