"""What the device knows of each row: tokens, counts, KV and features.

Rounds read and advance these tensors themselves, so that a round can be launched before the host
has seen the one before.

Of a row's tokens, the first `lengths` are in the target's cache; the next one has been emitted and
is the target's next input. The draft's entry for position i joins the target's feature at i with
token i + 1; it has the entries before `covered` and lacks those in [covered, lengths). In its
cache they lie one behind the other, `draft_lengths` of them: fewer than `covered` where some were
skipped.
"""

import torch
from torch import Tensor

from specserve.plan import Plan
from specserve.plan.rows import row_slack
from specserve.torch_engine.attention import Step
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.features import FeatureStore


def usable_row_tokens(plan: Plan) -> int:
    """Tokens that a request may have so that no round writes past the end of its row."""
    return plan.scheduler.row_tokens - row_slack(plan.speculation)


class Rows:
    """The state of all rows. Tokens are [R, row_tokens], the counts [R], all int64."""

    def __init__(
        self, target_cache: KVCache, draft_cache: KVCache | None, features: FeatureStore | None
    ) -> None:
        num_rows = target_cache.num_rows
        device = target_cache.layers[0].device
        self.target_cache = target_cache
        self._caches = (target_cache,) if draft_cache is None else (target_cache, draft_cache)
        self._features = features
        self.tokens = torch.zeros(
            (num_rows, target_cache.row_tokens), dtype=torch.int64, device=device
        )
        self.lengths = torch.zeros(num_rows, dtype=torch.int64, device=device)
        self.covered = torch.zeros_like(self.lengths)
        self.draft_lengths = torch.zeros_like(self.lengths)
        self.no_counts = torch.zeros_like(self.lengths)
        # Every small index a round needs is a view of these.
        self.counting = torch.arange(target_cache.row_tokens + 1, device=device)
        self.first_slots = torch.arange(num_rows, device=device)[:, None] * target_cache.row_tokens

    def start(self, row: int, prompt: Tensor) -> None:
        """Give a row to a new request."""
        self.tokens[row, : prompt.shape[0]] = prompt
        self.lengths[row] = 0
        self.covered[row] = 0
        self.draft_lengths[row] = 0

    def append(self, first_row: int, tokens: Tensor, counts: Tensor | int) -> None:
        """Add the first `counts` [B] of `tokens` [B, Q] behind each row's last token.

        All Q are written; what lies beyond the count is overwritten before it is read.
        """
        lengths = self.lengths[first_row : first_row + tokens.shape[0]]
        places = lengths[:, None] + self.counting[1 : tokens.shape[1] + 1]
        self.tokens[first_row : first_row + tokens.shape[0]].scatter_(1, places, tokens)
        lengths += counts

    def step(
        self, first_row: int, positions: Tensor, places: Tensor, kv_tokens: int, mask: Tensor | None
    ) -> Step:
        """The Step of a pass over rows from `first_row` on; `places` [B, Q] lie within the rows."""
        num_rows, num_queries = places.shape
        slots = places + self.first_slots[first_row : first_row + num_rows]
        return Step(
            first_row=first_row,
            num_rows=num_rows,
            num_queries=num_queries,
            positions=positions,
            slots=slots.flatten(),
            kv_tokens=kv_tokens,
            mask=mask,
        )

    def move(self, source: int, destination: int, num_tokens: int) -> None:
        """Copy a row of at most `num_tokens` cached tokens over one that is free."""
        for cache in self._caches:
            cache.move_row(source, destination, num_tokens)
        if self._features is not None:
            self._features.move_row(source, destination, num_tokens)
        for values in (self.tokens, self.lengths, self.covered, self.draft_lengths):
            values[destination] = values[source]

    def exchange(self, one: int, other: int, num_tokens: int) -> None:
        """Let two rows of at most `num_tokens` cached tokens change places."""
        slots = self.first_slots[[one, other]] + self.counting[:num_tokens]
        for cache in self._caches:
            cache.move_slots(slots.flatten(), slots.flip(0).flatten())
        if self._features is not None:
            self._features.exchange_rows(one, other, num_tokens)
        for values in (self.tokens, self.lengths, self.covered, self.draft_lengths):
            values[[one, other]] = values[[other, one]]
