import math

import numpy as np
import pytest
import torch
from scipy import stats  # type: ignore[import-untyped]
from torch import Tensor

from specserve.engine import Sampling
from specserve.torch_engine.sampling import (
    SampledRows,
    choose_tokens,
    make_sampling_batch,
    token_probabilities,
    uniform,
)

CPU = torch.device("cpu")
LOGITS = torch.tensor([2.0, 1.0, 0.5, 0.0, -1.0])
P = LOGITS.double().softmax(-1).numpy()


def settings(
    *,
    temperature: float = 1.0,
    top_p: float = 1.0,
    top_k: int | None = None,
    min_p: float = 0.0,
    seed: int = 0,
    logit_bias: dict[int, float] | None = None,
) -> Sampling:
    return Sampling(
        temperature=temperature,
        top_p=top_p,
        top_k=top_k,
        min_p=min_p,
        seed=seed,
        logit_bias=logit_bias or {},
    )


def draw(one: Sampling, num_draws: int, logits: Tensor = LOGITS) -> Tensor:
    """Tokens of one request at `num_draws` positions with the same logits."""
    batch = make_sampling_batch([one], len(logits), CPU)
    positions = torch.arange(num_draws)[None]
    return choose_tokens(logits.expand(1, num_draws, -1), positions, batch)[0]


def sampled(*many: Sampling) -> SampledRows:
    rows = make_sampling_batch(many, len(LOGITS), CPU).sampled
    assert rows is not None
    return rows


def kept(one: Sampling) -> list[int]:
    probabilities = token_probabilities(LOGITS[None, None], sampled(one))[0, 0]
    return [int(i) for i in probabilities.nonzero().flatten()]


def test_temperature_zero_is_greedy() -> None:
    assert [0] * 50 == draw(settings(temperature=0.0), 50).tolist()


def test_samples_follow_the_targets_distribution() -> None:
    counts = np.bincount(draw(settings(seed=3), 20_000).numpy(), minlength=5)

    assert 1e-4 < stats.chisquare(counts, 20_000 * P).pvalue


def test_samples_of_many_seeds_at_one_position_follow_it_too() -> None:
    """A request's tokens differ between seeds, and not only along the text."""
    batch = make_sampling_batch([settings(seed=s) for s in range(20_000)], 5, CPU)
    positions = torch.full((20_000, 1), 7)
    tokens = choose_tokens(LOGITS.expand(20_000, 1, -1), positions, batch)[:, 0]

    assert 1e-4 < stats.chisquare(np.bincount(tokens.numpy()), 20_000 * P).pvalue


@pytest.mark.parametrize("temperature", [0.3, 2.0])
def test_temperature_sharpens_and_flattens(temperature: float) -> None:
    expected = (LOGITS.double() / temperature).softmax(-1).numpy()
    counts = np.bincount(draw(settings(temperature=temperature), 20_000).numpy(), minlength=5)

    assert 1e-4 < stats.chisquare(counts, 20_000 * expected).pvalue


def test_the_smallest_temperature_is_no_overflow() -> None:
    assert [0] * 50 == draw(settings(temperature=1e-30), 50).tolist()


@pytest.mark.parametrize(
    ("one", "expected"),
    [
        (settings(top_k=2), [0, 1]),
        (settings(top_k=99), [0, 1, 2, 3, 4]),
        (settings(top_p=0.5), [0]),
        (settings(top_p=0.6), [0, 1]),
        (settings(top_p=1e-9), [0]),
        (settings(min_p=0.3), [0, 1]),
        (settings(min_p=1.0), [0]),
        (settings(top_k=3, top_p=0.85), [0, 1]),
        (settings(top_p=0.85), [0, 1, 2]),
        (settings(temperature=10.0, min_p=0.3), [0, 1, 2, 3, 4]),
    ],
)
def test_truncation_keeps_what_it_should(one: Sampling, expected: list[int]) -> None:
    """p = 0.566, 0.208, 0.126, 0.077, 0.028; top_p counts what top_k has left; then min_p."""
    assert expected == kept(one)


def test_a_truncated_distribution_keeps_its_proportions() -> None:
    counts = np.bincount(draw(settings(top_k=3, seed=1), 20_000).numpy(), minlength=5)

    assert 1e-4 < stats.chisquare(counts[:3], 20_000 * P[:3] / P[:3].sum()).pvalue
    assert 0 == counts[3:].sum()


def test_a_request_samples_the_same_in_any_batch() -> None:
    """Neither a neighbour that truncates nor the row number changes a request's tokens."""
    mine = settings(seed=11)
    logits = torch.randn(3, 40, 5, generator=torch.Generator().manual_seed(0))
    positions = torch.arange(40).expand(3, -1)
    others = [settings(temperature=0.0), settings(top_p=0.4, seed=2, logit_bias={1: 3.0})]

    alone = choose_tokens(logits[2:], positions[2:], make_sampling_batch([mine], 5, CPU))
    together = choose_tokens(logits, positions, make_sampling_batch([*others, mine], 5, CPU))

    assert alone[0].tolist() == together[2].tolist()
    assert logits[0].argmax(-1).tolist() == together[0].tolist()


def test_seeds_give_different_texts_and_any_integer_is_one() -> None:
    texts = {
        tuple(draw(settings(seed=seed), 30).tolist()) for seed in (0, 1, -1, 2**63, 2**64 + 5, 5)
    }

    assert 5 == len(texts)  # 2**64 + 5 and 5 have the same 64 bits


def test_a_bias_is_added_before_the_choice_and_leaves_the_logits_alone() -> None:
    logits = LOGITS.clone()

    assert [3] * 20 == draw(settings(temperature=0.0, logit_bias={3: 2.1}), 20, logits).tolist()
    assert 0 not in draw(settings(logit_bias={0: -100.0}), 5000, logits).tolist()
    assert LOGITS.equal(logits)


def test_uniform_numbers_are_uniform_and_independent_of_their_neighbours() -> None:
    numbers = uniform(torch.tensor([42]), torch.arange(50_000)).numpy()

    assert 1e-4 < stats.kstest(numbers, "uniform").pvalue
    assert 0.02 > abs(np.corrcoef(numbers[:-1], numbers[1:])[0, 1])
    assert 0 <= numbers.min()
    assert 1 > numbers.max()


def test_the_counter_is_splitmix64() -> None:
    """Against the generator in plain integers."""
    mask = (1 << 64) - 1

    def mix(z: int) -> int:
        z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & mask
        z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & mask
        return z ^ (z >> 31)

    golden = 0x9E3779B97F4A7C15
    seeds, indices = [0, 1, 2**62 + 5], [0, 1, 1000]
    expected = [
        (mix((mix((seed + golden) & mask) + (index + 1) * golden) & mask) >> 12) / 2**52
        for seed, index in zip(seeds, indices, strict=True)
    ]

    assert expected == uniform(torch.tensor(seeds), torch.tensor(indices)).tolist()


def test_an_unlikely_tail_cannot_be_chosen_by_rounding() -> None:
    """The last token has probability 0 and the share of the total may come close to 1."""
    logits = torch.tensor([0.0, 0.0, -math.inf])

    assert {0, 1} == set(draw(settings(), 20_000, logits).tolist())
