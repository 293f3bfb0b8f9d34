"""What a round computes, from launch to the tensors that the host reads.

B rows of a group, K drafted tokens of a chain, N nodes of a tree, V tokens in the vocabulary.
A round reads the rows' counts on the device and advances them itself.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from specserve.torch_engine.attention import pack
from specserve.torch_engine.drafter import Drafter, captured
from specserve.torch_engine.group import Depth, Group, LogprobRows, Window
from specserve.torch_engine.logprobs import Logprobs, emitted_logprobs
from specserve.torch_engine.masks import causal_mask, tree_mask
from specserve.torch_engine.passes import TargetPasses
from specserve.torch_engine.readback import Readback
from specserve.torch_engine.rows import Rows
from specserve.torch_engine.sampling import choose_tokens
from specserve.torch_engine.target import TargetOutput
from specserve.torch_engine.tree_drafter import propose_tree
from specserve.torch_engine.verify import verify_chain, verify_tree


class Emitted:
    """What a pass emitted for each row of a group, read when the host needs it."""

    def __init__(self, tokens: Tensor, num_accepted: Tensor, logprobs: Logprobs | None) -> None:
        self._readback = Readback((tokens, num_accepted, *(logprobs or ())))

    def runs(self) -> list[list[int]]:
        """The new tokens of each row."""
        tokens, num_accepted, *_ = self._readback.wait()
        return [
            run[: accepted + 1]
            for run, accepted in zip(tokens.tolist(), num_accepted.tolist(), strict=True)
        ]

    def logprobs(self) -> Logprobs:
        """Of the group's logprob rows, in their order; only if the group has any."""
        return Logprobs(*self._readback.wait()[2:])


class Span(NamedTuple):
    """Prompt tokens [start, start + num_tokens) of a row."""

    row: int
    start: int
    num_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Decoder:
    """The target's passes over running rows."""

    target: TargetPasses
    rows: Rows

    def prefill(self, spans: Sequence[Span]) -> TargetOutput:
        """Pass spans of different rows, one behind the other: outputs [1, sum of tokens, ...]."""
        rows, parts, tokens = self.rows, [], []
        for row, start, num_tokens in spans:
            end = start + num_tokens
            positions = rows.counting[None, start:end]
            mask = causal_mask(positions, rows.counting, end)
            parts.append(rows.step(row, positions, positions, end, mask))
            tokens.append(rows.tokens[row : row + 1, start:end])
        return self.target(torch.cat(tokens, dim=1), pack(parts), rows.target_cache)

    def first_tokens(self, group: Group, hidden: Tensor, prompt_tokens: Sequence[int]) -> Emitted:
        """Choose the tokens behind whole prompts of B rows; decoding can begin.

        `hidden` [B, 1, d] is the prompts' last output, `prompt_tokens` [B] their lengths.
        """
        rows = self.rows
        positions = torch.tensor(prompt_tokens, device=hidden.device)[:, None] - 1
        rows.lengths[group.rows] = positions[:, 0]
        return self._emit_one(group, hidden, positions)

    def plain(self, group: Group, window: Window, drafter: Drafter | None) -> Emitted:
        """One token for each row. Its features are kept for the drafter, if there is one."""
        rows = self.rows
        positions = rows.lengths[group.rows, None]
        kv_tokens = window.kv_tokens + 1
        mask = None if window.lengths_known else causal_mask(positions, rows.counting, kv_tokens)
        last = rows.tokens[group.rows].gather(1, positions)
        output = self._forward(group.first_row, last, positions, positions, kv_tokens, mask)
        if drafter is not None:
            drafter.keep_features(group.first_row, positions, output)
        return self._emit_one(group, output.hidden, positions)

    def chain(self, group: Group, window: Window, drafter: Drafter, depth: Depth) -> Emitted:
        """Draft K tokens for each row and verify them in one pass of K + 1 queries."""
        rows = self.rows
        drafted = drafter.propose_chain(group, depth.num_steps, window)
        lengths = rows.lengths[group.rows, None]
        positions = lengths + rows.counting[: depth.num_steps + 1]
        kv_tokens = window.kv_tokens + depth.num_steps + 1
        mask = causal_mask(positions, rows.counting, kv_tokens)
        tokens = torch.cat([rows.tokens[group.rows].gather(1, lengths), drafted], dim=1)
        output = self._forward(group.first_row, tokens, positions, positions, kv_tokens, mask)
        drafter.keep_features(group.first_row, positions, output)
        logits = self.target.logits(output.hidden)
        chosen = choose_tokens(logits, positions, group.sampling)
        verdict = verify_chain(drafted, chosen)
        rows.append(group.first_row, verdict.tokens, verdict.num_accepted + 1)
        logprobs = _logprobs(group.logprobs, logits, verdict.tokens, None)
        return Emitted(verdict.tokens, verdict.num_accepted, logprobs)

    def tree(self, group: Group, window: Window, drafter: Drafter, depth: Depth) -> Emitted:
        """Draft a tree for each row, verify its N nodes in one pass, keep the accepted path."""
        rows = self.rows
        tree = propose_tree(drafter, group, depth, window)
        num_nodes = tree.tokens.shape[1]
        lengths = rows.lengths[group.rows, None]
        places = lengths + rows.counting[:num_nodes]
        kv_tokens = window.kv_tokens + num_nodes
        mask = tree_mask(tree.ancestors, lengths[:, 0], rows.counting, kv_tokens)
        positions = lengths + tree.depths
        output = self._forward(group.first_row, tree.tokens, positions, places, kv_tokens, mask)
        logits = self.target.logits(output.hidden)
        chosen = choose_tokens(logits, positions, group.sampling)
        verdict = verify_tree(tree.tokens, tree.parents, tree.ancestors, chosen, depth.num_steps)
        self._straighten(group, drafter, lengths, verdict.path, output)
        rows.append(group.first_row, verdict.tokens, verdict.num_accepted + 1)
        logprobs = _logprobs(group.logprobs, logits, verdict.tokens, verdict.path)
        return Emitted(verdict.tokens, verdict.num_accepted, logprobs)

    def _straighten(
        self, group: Group, drafter: Drafter, lengths: Tensor, path: Tensor, output: TargetOutput
    ) -> None:
        """Move the accepted path's KV and features to where a chain would have left them."""
        rows = self.rows
        first_slots = rows.first_slots[group.rows] + lengths
        order = rows.counting[: path.shape[1]]
        rows.target_cache.move_slots(
            (first_slots + path).flatten(), (first_slots + order).flatten()
        )
        features = captured(output)
        nodes = path[..., None].expand(-1, -1, features.shape[-1])
        drafter.features.write(group.first_row, lengths + order, features.gather(1, nodes))

    def _emit_one(self, group: Group, hidden: Tensor, positions: Tensor) -> Emitted:
        """Choose and append one token for each row from hidden states [B, 1, d]."""
        logits = self.target.logits(hidden)
        tokens = choose_tokens(logits, positions, group.sampling)
        self.rows.append(group.first_row, tokens, 1)
        none_accepted = self.rows.no_counts[: group.num_rows]
        return Emitted(tokens, none_accepted, _logprobs(group.logprobs, logits, tokens, None))

    def _forward(
        self,
        first_row: int,
        tokens: Tensor,
        positions: Tensor,
        places: Tensor,
        kv_tokens: int,
        mask: Tensor | None,
    ) -> TargetOutput:
        step = self.rows.step(first_row, positions, places, kv_tokens, mask)
        return self.target(tokens, step, self.rows.target_cache)


def _logprobs(
    wanted: LogprobRows | None, logits: Tensor, tokens: Tensor, path: Tensor | None
) -> Logprobs | None:
    """Of the rows that want them, at the emitted tokens [B, Q]; `path` names their logits."""
    if wanted is None:
        return None
    logits, tokens = logits[wanted.rows], tokens[wanted.rows]
    if path is not None:
        nodes = path[wanted.rows]
        logits = logits.gather(1, nodes[..., None].expand(-1, -1, logits.shape[-1]))
    return emitted_logprobs(logits, tokens, wanted.num_top)
