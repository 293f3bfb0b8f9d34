"""A prompt on its way through target and draft, in chunks between the decode rounds."""

from dataclasses import dataclass

import torch

from specserve.engine import GenerationRequest
from specserve.torch_engine.bounds import RowBounds
from specserve.torch_engine.drafter import Drafter, captured
from specserve.torch_engine.group import Group
from specserve.torch_engine.round import Decoder, Emitted


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Prompt tokens [start, start + num_tokens) of a row.

    `prompt` comes with the first chunk, `group` with the last. The draft gets the entries of the
    first `num_pairs` of these positions, behind `num_held` that it has in its cache; `covered` is
    the position up to which it then has them.
    """

    row: int
    start: int
    num_tokens: int
    prompt: tuple[int, ...] | None
    group: Group | None
    feeds_draft: bool
    num_pairs: int
    num_held: int
    covered: int


def pass_chunk(decoder: Decoder, drafter: Drafter | None, chunk: Chunk) -> Emitted | None:
    """Compute a chunk; the last one emits the first token and makes the row ready to decode."""
    rows, row = decoder.rows, chunk.row
    if chunk.prompt is not None:
        rows.start(row, torch.tensor(chunk.prompt, device=rows.tokens.device))
    output = decoder.prefill(row, chunk.start, chunk.num_tokens)
    if drafter is not None and chunk.feeds_draft:
        features = captured(output)
        num_kept = min(chunk.num_tokens, drafter.features.ring_tokens)
        end = chunk.start + chunk.num_tokens
        positions = rows.counting[None, end - num_kept : end]
        drafter.features.write(row, positions, features[:, -num_kept:])
        if chunk.num_pairs:
            drafter.extend_prompt(row, chunk.start, features[:, : chunk.num_pairs], chunk.num_held)
    if chunk.group is None:
        return None
    rows.covered[row] = chunk.covered
    rows.draft_lengths[row] = chunk.num_held + chunk.num_pairs
    return decoder.first_token(chunk.group, output, chunk.start + chunk.num_tokens)


class Prefill:
    """How far one request's prompt has come. `group` is its row alone, for the first token."""

    def __init__(self, request: GenerationRequest, group: Group, *, speculates: bool) -> None:
        self.request = request
        self.speculates = speculates
        self._group = group
        self._num_done = 0
        self._covered = 0
        self._num_held = 0

    @property
    def row(self) -> int:
        """The row that it fills."""
        return self._group.first_row

    @property
    def num_left(self) -> int:
        """Prompt tokens that have not been passed yet; 0 once it may decode."""
        return len(self.request.prompt_token_ids) - self._num_done

    @property
    def bounds(self) -> RowBounds:
        """The row's counts, exact, once the prompt is through."""
        length = self._num_done
        return RowBounds(
            length=length,
            num_pairs=length - self._covered,
            has_hole=self._covered != self._num_held,
        )

    def advance(self, num_tokens: int, *, extends_draft: bool, may_skip: bool) -> Chunk:
        """The next chunk. The draft is extended if asked for, but only without a gap or `may_skip`.

        A gap arises while speculation is off; features in the store can fill it later.
        """
        start = self._num_done
        is_last = num_tokens == self.num_left
        extends = self.speculates and extends_draft and (may_skip or self._covered == start)
        # The last position's partner is the token that comes out.
        num_pairs = num_tokens - is_last if extends else 0
        num_held = self._num_held
        if num_pairs:
            self._covered = start + num_pairs
            self._num_held += num_pairs
        self._num_done += num_tokens
        return Chunk(
            row=self.row,
            start=start,
            num_tokens=num_tokens,
            prompt=None if start else self.request.prompt_token_ids,
            group=self._group if is_last else None,
            feeds_draft=self.speculates,
            num_pairs=num_pairs,
            num_held=num_held,
            covered=self._covered,
        )
