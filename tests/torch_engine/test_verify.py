import torch

from specserve.torch_engine.tree import ancestor_closure
from specserve.torch_engine.verify import verify_chain, verify_tree


def test_a_chain_is_kept_up_to_the_first_difference() -> None:
    drafted = torch.tensor([[1, 2, 3], [1, 2, 3], [1, 2, 3], [9, 2, 3]])
    chosen = torch.tensor([[1, 2, 3, 4], [1, 7, 3, 4], [1, 2, 8, 4], [1, 2, 3, 4]])

    verdict = verify_chain(drafted, chosen)

    assert [3, 1, 2, 0] == verdict.num_accepted.tolist()
    assert [[1, 2, 3, 4], [1, 7], [1, 2, 8], [1]] == [
        run[: accepted + 1]
        for run, accepted in zip(
            verdict.tokens.tolist(), verdict.num_accepted.tolist(), strict=True
        )
    ]


def test_a_tree_is_kept_along_the_targets_path() -> None:
    """Root 5 with children 1 and 2; 1 has children 3 and 4; 2 has child 3."""
    tokens = torch.tensor([[5, 1, 2, 3, 4, 3]]).expand(4, -1)
    parents = torch.tensor([[0, 0, 0, 1, 1, 2]]).expand(4, -1)
    chosen = torch.tensor(
        [
            [1, 4, 9, 9, 8, 9],  # 1, then 4, then the bonus 8
            [2, 9, 3, 9, 9, 7],  # 2, then 3 under 2, then 7
            [2, 9, 4, 9, 9, 9],  # 2, then 4, which is a child of 1 only
            [6, 9, 9, 9, 9, 9],  # nothing
        ]
    )

    verdict = verify_tree(tokens, parents, ancestor_closure(parents), chosen, max_depth=2)

    assert [2, 2, 1, 0] == verdict.num_accepted.tolist()
    runs = [
        run[: accepted + 1]
        for run, accepted in zip(
            verdict.tokens.tolist(), verdict.num_accepted.tolist(), strict=True
        )
    ]
    assert [[1, 4, 8], [2, 3, 7], [2, 4], [6]] == runs
    assert [[0, 1, 4], [0, 2, 5], [0, 2], [0]] == [
        path[: accepted + 1]
        for path, accepted in zip(verdict.path.tolist(), verdict.num_accepted.tolist(), strict=True)
    ]


def test_a_chain_verified_as_a_tree_gives_the_same() -> None:
    generator = torch.Generator().manual_seed(0)
    drafted = torch.randint(0, 2, (64, 4), generator=generator)
    chosen = torch.randint(0, 2, (64, 5), generator=generator)
    tokens = torch.cat([torch.zeros(64, 1, dtype=torch.int64), drafted], dim=1)
    parents = torch.tensor([[0, 0, 1, 2, 3]]).expand(64, -1)

    chain = verify_chain(drafted, chosen)
    tree = verify_tree(tokens, parents, ancestor_closure(parents), chosen, max_depth=4)

    assert chain.num_accepted.tolist() == tree.num_accepted.tolist()
    for row, accepted in enumerate(chain.num_accepted.tolist()):
        assert chain.tokens[row, : accepted + 1].tolist() == (
            tree.tokens[row, : accepted + 1].tolist()
        )
