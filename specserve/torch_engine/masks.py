"""Which cached tokens a query sees, by their places within its row.

B rows, Q queries each, L places looked at, T tree places behind the text.
"""

import torch
from torch import Tensor
from torch.nn.functional import pad


def causal_mask(places: Tensor, counting: Tensor, kv_tokens: int) -> Tensor:
    """Queries at places [B, Q] see themselves and all before: bool [B, Q, L = kv_tokens].

    `counting` is 0, 1, 2, … on the device, at least `kv_tokens` long.
    """
    return counting[:kv_tokens] <= places[..., None]


def tree_mask(visible: Tensor, bases: Tensor, counting: Tensor, kv_tokens: int) -> Tensor:
    """Queries see all places before `bases` [B], and of the T behind it those that are `visible`.

    `visible` is bool [B, Q, T]; the result [B, Q, L = kv_tokens].
    """
    num_queries, num_places = visible.shape[1:]
    # Two more columns: hidden for the places behind the tree, visible for those before it.
    columns = pad(pad(visible, (0, 1), value=False), (0, 1), value=True)
    tree_places = counting[:kv_tokens] - bases[:, None]
    column = torch.where(tree_places < 0, num_places + 1, tree_places.clamp(max=num_places))
    return columns.gather(2, column[:, None].expand(-1, num_queries, -1))
