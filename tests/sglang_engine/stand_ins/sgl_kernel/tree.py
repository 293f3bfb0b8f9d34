"""Trees of draft tokens: which token hangs on which, and which path the target agrees with.

B requests, N tokens to verify per request (the root, which is the bonus token of the last round,
and N - 1 draft tokens), D draft steps of `topk` branches.
"""

import torch
from torch import Tensor

ROOT = 0
NOWHERE = -1
QLEN_ONLY = 1  # the mask of N × N draft tokens alone, without the columns of the prefix


def build_tree_kernel_efficient_cpu(
    parent_list: Tensor,
    selected_index: Tensor,
    verified_seq_len: Tensor,
    tree_mask: Tensor,
    positions: Tensor,
    retrieve_index: Tensor,
    retrieve_next_token: Tensor,
    retrieve_next_sibling: Tensor,
    topk: int,
    depth: int,
    draft_token_num: int,
    tree_mask_mode: int,
) -> None:
    """Fill the links, positions and ancestor mask of each request's tree.

    `selected_index` [B, N - 1] names each draft token among all candidates that were drafted,
    and candidate c hangs on candidate `parent_list[c // topk]` [B, topk × (D - 1) + 1], or on the
    root where c // topk is 0. Outputs: `retrieve_index` [B, N] numbers the tokens of the batch;
    `retrieve_next_token` [B, N] is a token's first child and `retrieve_next_sibling` [B, N] the
    next child of its parent, -1 for none, which the caller has filled in; `positions` [B × N];
    `tree_mask` [B × N × N], true where the row's token descends from the column's, or is it.
    """
    if tree_mask_mode != QLEN_ONLY:
        raise NotImplementedError(f"tree_mask_mode {tree_mask_mode}: the CPU path asks for 1")
    shape = retrieve_index.shape
    retrieve_index.view(-1).copy_(_arange_like(retrieve_index))
    mask = tree_mask.view(*shape, draft_token_num)
    mask.fill_(False)
    mask[:, :, ROOT] = True
    for request, seq_len in enumerate(verified_seq_len.tolist()):
        parents = _parents(selected_index[request].tolist(), parent_list[request].tolist(), topk)
        children, siblings = retrieve_next_token[request], retrieve_next_sibling[request]
        for token in reversed(parents):
            parent = parents[token]
            if parent != NOWHERE:
                siblings[token], children[parent] = children[parent].clone(), token
        for token in range(draft_token_num):
            path = _path_to_root(token, parents, depth)
            mask[request, token, path] = True
            positions.view(shape)[request, token] = seq_len + len(path)


def verify_tree_greedy_cpu(
    *,
    predicts: Tensor,
    accept_index: Tensor,
    accept_token_num: Tensor,
    candidates: Tensor,
    retrive_index: Tensor,
    retrive_next_token: Tensor,
    retrive_next_sibling: Tensor,
    target_predict: Tensor,
) -> None:
    """Walk each tree along the tokens that the target would have chosen.

    In: `candidates` [B, N] are the draft tokens, `target_predict` [B, N] the target's choice
    after each. Out: `predicts` [B × N] holds the emitted token at each accepted place,
    `accept_index` [B, D + 1] the accepted places in order, root first, -1 filled in by the caller;
    `accept_token_num` [B] counts the accepted draft tokens, root and bonus token not included.
    """
    tokens, chosen = candidates.tolist(), target_predict.flatten().tolist()
    indices, children = retrive_index.tolist(), retrive_next_token.tolist()
    siblings = retrive_next_sibling.tolist()
    for request in range(len(tokens)):
        accepted, token = [indices[request][ROOT]], ROOT
        while len(accepted) < accept_index.shape[1]:
            token = children[request][token]
            while token != NOWHERE and tokens[request][token] != chosen[accepted[-1]]:
                token = siblings[request][token]
            if token == NOWHERE:
                break
            accepted.append(indices[request][token])
        for place, index in enumerate(accepted):
            accept_index[request, place] = index
            predicts[index] = chosen[index]
        accept_token_num[request] = len(accepted) - 1


def fill_bonus_tokens_cpu(
    accept_tokens: Tensor, accept_lens: Tensor, bonus_tokens: Tensor, accept_stride: int
) -> None:
    """Write each request's last emitted token to `bonus_tokens` [B].

    `accept_tokens` [B × accept_stride]; `accept_lens` [B] includes the bonus token.
    """
    first = _arange_like(accept_lens) * accept_stride
    bonus_tokens.copy_(accept_tokens.flatten()[first + accept_lens.long() - 1])


def _parents(selected: list[int], parent_list: list[int], topk: int) -> dict[int, int]:
    """Each draft token's parent token, both numbered from the root's 0."""
    token_of = {candidate: token for token, candidate in enumerate(selected, start=1)}
    return {
        token: ROOT if candidate < topk else token_of.get(parent_list[candidate // topk], NOWHERE)
        for token, candidate in enumerate(selected, start=1)
    }


def _path_to_root(token: int, parents: dict[int, int], depth: int) -> list[int]:
    """The token and its ancestors below the root, nearest first, at most `depth` of them."""
    path: list[int] = []
    while token not in (ROOT, NOWHERE) and len(path) < depth:
        path.append(token)
        token = parents[token]
    return path


def _arange_like(tensor: Tensor) -> Tensor:
    return torch.arange(tensor.numel())
