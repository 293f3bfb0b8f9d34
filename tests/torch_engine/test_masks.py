import torch

from specserve.torch_engine.masks import causal_mask, tree_mask

COUNTING = torch.arange(16)


def test_a_query_sees_itself_and_what_lies_before_it() -> None:
    mask = causal_mask(torch.tensor([[1, 2], [0, 3]]), COUNTING, 4)

    assert [
        [[1, 1, 0, 0], [1, 1, 1, 0]],
        [[1, 0, 0, 0], [1, 1, 1, 1]],
    ] == mask.int().tolist()


def test_a_tree_query_sees_the_text_and_its_own_branch() -> None:
    visible = torch.tensor([[[1, 0, 1]], [[0, 1, 1]]]).bool()

    mask = tree_mask(visible, torch.tensor([2, 1]), COUNTING, 6)

    assert [[[1, 1, 1, 0, 1, 0]], [[1, 0, 1, 1, 0, 0]]] == mask.int().tolist()


def test_a_chain_as_a_tree_is_causal() -> None:
    bases = torch.tensor([3, 0, 5])
    visible = torch.ones(4, 4).tril().bool().expand(3, -1, -1)

    assert causal_mask(bases[:, None] + torch.arange(4), COUNTING, 10).equal(
        tree_mask(visible, bases, COUNTING, 10)
    )
