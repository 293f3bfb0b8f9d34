"""Sampling with speculation has the target's distribution, whatever the draft proposes.

The target is a Markov chain over five tokens, so that the probability of every short text is
known. 20,000 requests with different seeds are decoded by the engine's own choosing and
verifying; their texts are counted against those probabilities.
"""

import itertools
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats  # type: ignore[import-untyped]
from torch import Tensor

from specserve.testing.loops import GREEDY
from specserve.torch_engine.sampling import SamplingBatch, choose_tokens, make_sampling_batch
from specserve.torch_engine.tree import ancestor_closure
from specserve.torch_engine.verify import verify_chain, verify_tree

V, NUM_REQUESTS, TEXT_TOKENS = 5, 20_000, 3
LOGITS = torch.randn(V, V, generator=torch.Generator().manual_seed(5))
LIKELIEST = LOGITS.argsort(dim=-1, descending=True)
TEXTS = list(itertools.product(range(V), repeat=TEXT_TOKENS))


def batch() -> SamplingBatch:
    seeds = (replace(GREEDY, temperature=1.0, seed=seed) for seed in range(NUM_REQUESTS))
    return make_sampling_batch(list(seeds), V, torch.device("cpu"))


def chain_round(last: Tensor, length: Tensor, sampling: SamplingBatch, rank: int) -> Tensor:
    """Draft two tokens, each the target's `rank`-likeliest; return what is emitted, -1 padded."""
    first = LIKELIEST[last, rank]
    drafted = torch.stack([first, LIKELIEST[first, rank]], dim=1)
    nodes = torch.cat([last[:, None], drafted], dim=1)
    positions = length[:, None] + torch.arange(3)
    chosen = choose_tokens(LOGITS[nodes], positions, sampling)
    verdict = verify_chain(drafted, chosen)
    return verdict.tokens.where(torch.arange(3) <= verdict.num_accepted[:, None], -1)


def tree_round(last: Tensor, length: Tensor, sampling: SamplingBatch, rank: int) -> Tensor:
    """Draft two children, and two under the first of them, from the `rank`-likeliest on."""
    children = LIKELIEST[last][:, rank : rank + 2]
    below = LIKELIEST[children[:, 0]][:, rank : rank + 2]
    nodes = torch.cat([last[:, None], children, below], dim=1)
    parents = torch.tensor([[0, 0, 0, 1, 1]]).expand(len(last), -1)
    ancestors = ancestor_closure(parents)
    positions = length[:, None] + torch.tensor([0, 1, 1, 2, 2])
    chosen = choose_tokens(LOGITS[nodes], positions, sampling)
    verdict = verify_tree(nodes, parents, ancestors, chosen, max_depth=2)
    return verdict.tokens.where(torch.arange(3) <= verdict.num_accepted[:, None], -1)


def texts(kind: str, rank: int) -> tuple[list[tuple[int, ...]], float]:
    """The first tokens of each request behind token 0, and the mean length of a round."""
    sampling = batch()
    text = torch.zeros((NUM_REQUESTS, 16), dtype=torch.int64)
    length = torch.zeros(NUM_REQUESTS, dtype=torch.int64)
    rounds = 0
    while int(length.min()) < TEXT_TOKENS:
        last = text.gather(1, length[:, None])[:, 0]
        emitted = (chain_round if kind == "chain" else tree_round)(last, length, sampling, rank)
        text.scatter_(1, length[:, None] + torch.arange(1, 4), emitted.clamp(min=0))
        length += (emitted >= 0).sum(dim=1)
        rounds += 1
    shown = [tuple(row) for row in text[:, 1 : TEXT_TOKENS + 1].tolist()]
    return shown, float(length.double().mean()) / rounds


def probability(text: tuple[int, ...]) -> float:
    p = LOGITS.double().softmax(dim=-1)
    pairs = itertools.pairwise((0, *text))
    return float(np.prod([float(p[before, after]) for before, after in pairs]))


@pytest.mark.parametrize("kind", ["chain", "tree"])
@pytest.mark.parametrize("rank", [0, 3])
def test_texts_have_the_targets_distribution(kind: str, rank: int) -> None:
    """Rank 0 is as good a draft as there is, rank 3 a bad one."""
    shown, _ = texts(kind, rank)
    found = np.array([shown.count(text) for text in TEXTS])
    expected = np.array([probability(text) for text in TEXTS]) * NUM_REQUESTS
    rare = expected < 10  # too few for the test's approximation: counted together

    assert (
        1e-4
        < stats.chisquare(
            [*found[~rare], found[rare].sum()], [*expected[~rare], expected[rare].sum()]
        ).pvalue
    )


def test_texts_of_a_seed_do_not_depend_on_the_draft() -> None:
    assert 1 == len({tuple(texts(kind, rank)[0]) for kind in ("chain", "tree") for rank in (0, 3)})


def test_a_good_draft_is_accepted_more_often() -> None:
    """So the tests above compare what they say they do."""
    assert texts("chain", 3)[1] + 0.3 < texts("chain", 0)[1]
