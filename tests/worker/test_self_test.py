"""Where two modes may differ. Engines that lie are in test_launch.py, a true one in
test_torch_worker.py."""

import math

import pytest

from specserve.engine import Mode, TokenLogprob
from specserve.errors import EngineError
from specserve.worker.self_test import ModeProof, where_parted

TIE = 0.15


def _proof(mode: Mode, *tokens: tuple[int, float, int, float]) -> ModeProof:
    """Each token with its logprob, and the runner-up with its own."""
    return ModeProof(
        mode=mode,
        token_ids=tuple(token for token, *_ in tokens),
        logprobs=tuple(
            TokenLogprob(token_id=token, logprob=best, top=((token, best), (other, second)))
            for token, best, other, second in tokens
        ),
        drafted=0,
        accepted=0,
        verify_rounds=0,
        plain_steps=0,
    )


def test_equal_outputs_part_nowhere() -> None:
    plain = _proof(Mode.PLAIN, (5, -0.1, 6, -3.0), (7, -0.2, 8, -2.0))

    assert where_parted(plain, plain, TIE) is None


@pytest.mark.parametrize("gap", [0.0, 0.1, 0.15])
def test_outputs_may_part_where_rounding_decides(gap: float) -> None:
    """What follows the tie is another text, and is not compared."""
    plain = _proof(Mode.PLAIN, (5, -0.1, 6, -3.0), (7, -1.0, 8, -1.0 - gap), (9, -0.1, 1, -4.0))
    other = _proof(Mode.SPECULATIVE, (5, -0.1, 6, -3.0), (8, -1.0, 7, -1.0), (2, -0.1, 3, -4.0))

    assert 1 == where_parted(plain, other, TIE)


@pytest.mark.parametrize(
    ("runner_up", "its_logprob"),
    [(8, -1.5), (4, -1.0), (8, -math.inf)],
    ids=["clearly worse", "not among the best", "impossible"],
)
def test_outputs_that_differ_elsewhere_are_an_error(runner_up: int, its_logprob: float) -> None:
    plain = _proof(Mode.PLAIN, (7, -1.0, runner_up, its_logprob))
    other = _proof(Mode.SPECULATIVE, (8, -1.0, 7, -1.0))

    with pytest.raises(EngineError, match=r"at token 0: plain \[7\], speculative \[8\]"):
        where_parted(plain, other, TIE)
