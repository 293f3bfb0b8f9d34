"""The draft's passes: make up for what it has not seen, then propose a chain.

B rows of a group, Q queries each, K drafted tokens of a chain, d the draft's hidden size.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from specserve.errors import EngineError
from specserve.torch_engine.attention import pack
from specserve.torch_engine.cache import KVCache
from specserve.torch_engine.features import FeatureStore
from specserve.torch_engine.group import Group, Window
from specserve.torch_engine.masks import causal_mask
from specserve.torch_engine.passes import DraftPasses
from specserve.torch_engine.rows import Rows
from specserve.torch_engine.target import TargetOutput


def captured(output: TargetOutput) -> Tensor:
    """The features [B, Q, F] of a pass. Raises EngineError if the target captured none."""
    if output.features is None:
        raise EngineError("the target captured no features, so the draft has nothing to read")
    return output.features


class DraftSpan(NamedTuple):
    """Entries of a row for prompt positions [start, start + num_pairs), behind `num_held`."""

    row: int
    start: int
    num_pairs: int
    num_held: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Drafter:
    """A draft with its cache and the features it is fed with."""

    draft: DraftPasses
    cache: KVCache
    features: FeatureStore
    rows: Rows
    max_num_steps: int

    @property
    def most_pairs(self) -> int:
        """So many missing entries, the newest, can be made good within a round."""
        return self.max_num_steps + 1

    def extend(self, group: Group, window: Window) -> Tensor:
        """Make up for all missing entries of the group; return the newest's output [B, d].

        That output proposes the token after the last one.
        """
        lengths = self.rows.lengths[group.rows]
        covered = self.rows.covered[group.rows]
        if window.skips:
            torch.maximum(covered, lengths - window.num_pairs, out=covered)
        num_missing = lengths - covered
        hidden = self._extend(
            group.first_row,
            group.num_rows,
            window.num_pairs,
            window.kv_tokens,
            sees_all=window.entries_known and window.num_pairs == 1,
        )
        self.rows.draft_lengths[group.rows] += num_missing
        covered.copy_(lengths)
        if window.entries_known:
            return hidden[:, -1]
        return hidden[self.rows.counting[: group.num_rows], num_missing - 1]

    def keep_up(self, group: Group, window: Window) -> None:
        """Make up for all missing entries, without proposing."""
        self.extend(group, window)

    def refill(self, row: int, num_pairs: int, kv_tokens: int) -> None:
        """Make up for the `num_pairs` oldest missing entries of a row, all of them in the store."""
        self._extend(row, 1, num_pairs, kv_tokens, sees_all=False)
        self.rows.draft_lengths[row] += num_pairs
        self.rows.covered[row] += num_pairs

    def extend_prompts(self, spans: Sequence[DraftSpan], features: Tensor) -> None:
        """Add entries of different rows in one pass; `features` [1, sum of pairs, F] are theirs."""
        rows, count = self.rows, self.rows.counting
        parts, tokens = [], []
        for row, start, num_pairs, num_held in spans:
            num_entries = num_held + num_pairs
            places = count[None, num_held:num_entries]
            positions = count[None, start : start + num_pairs]
            mask = causal_mask(places, count, num_entries)
            parts.append(rows.step(row, positions, places, num_entries, mask))
            tokens.append(rows.tokens[row : row + 1, start + 1 : start + num_pairs + 1])
        self.draft(torch.cat(tokens, dim=1), self.draft.fuse(features), pack(parts), self.cache)

    def keep_features(self, first_row: int, positions: Tensor, output: TargetOutput) -> None:
        """Store what the target has computed at positions [B, Q]."""
        self.features.write(first_row, positions, captured(output))

    def propose_chain(self, group: Group, num_steps: int, window: Window) -> Tensor:
        """Drafted tokens [B, K], each the likeliest after those before it."""
        hidden = self.extend(group, window)
        drafted = [self._likeliest(hidden)]
        if num_steps == 1:
            return drafted[0][:, None]
        count = self.rows.counting
        positions = self.rows.lengths[group.rows, None] + count[: num_steps - 1]
        places = self.rows.draft_lengths[group.rows, None] + count[: num_steps - 1]
        kv_tokens = window.kv_tokens + num_steps - 1
        mask = None if window.entries_known else causal_mask(places, count, kv_tokens)
        for step in range(num_steps - 1):
            hidden = self.forward(
                group.first_row,
                drafted[-1][:, None],
                hidden[:, None],
                positions=positions[:, step : step + 1],
                places=places[:, step : step + 1],
                kv_tokens=kv_tokens if mask is not None else window.kv_tokens + step + 1,
                mask=None if mask is None else mask[:, step : step + 1],
            )[:, 0]
            drafted.append(self._likeliest(hidden))
        return torch.stack(drafted, dim=1)

    def forward(
        self,
        first_row: int,
        tokens: Tensor,
        fused: Tensor,
        *,
        positions: Tensor,
        places: Tensor,
        kv_tokens: int,
        mask: Tensor | None,
    ) -> Tensor:
        """One pass over tokens [B, Q]; `places` [B, Q] are their slots within the rows."""
        step = self.rows.step(first_row, positions, places, kv_tokens, mask)
        return self.draft(tokens, fused, step, self.cache)

    def _extend(
        self, first_row: int, num_rows: int, num_pairs: int, kv_tokens: int, *, sees_all: bool
    ) -> Tensor:
        """Pass the `num_pairs` entries from `covered` on; [B, Q, d]. Changes no count.

        A row that lacks fewer writes the rest where its next tokens will overwrite it.
        """
        rows = slice(first_row, first_row + num_rows)
        ahead = self.rows.counting[:num_pairs]
        positions = self.rows.covered[rows, None] + ahead
        places = self.rows.draft_lengths[rows, None] + ahead
        return self.forward(
            first_row,
            self.rows.tokens[rows].gather(1, positions + 1),
            self.draft.fuse(self.features.read(first_row, positions)),
            positions=positions,
            places=places,
            kv_tokens=kv_tokens,
            mask=None if sees_all else causal_mask(places, self.rows.counting, kv_tokens),
        )

    def _likeliest(self, hidden: Tensor) -> Tensor:
        """Hidden states [B, d] -> target ids [B]."""
        return self.draft.target_ids(self.draft.logits(hidden).argmax(dim=-1))
