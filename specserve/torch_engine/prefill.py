"""Prompts on their way through target and draft, in chunks between the decode rounds."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch

from specserve.engine import GenerationRequest
from specserve.torch_engine.bounds import RowBounds
from specserve.torch_engine.drafter import Drafter, DraftSpan, captured
from specserve.torch_engine.group import Group
from specserve.torch_engine.round import Decoder, Emitted, Span
from specserve.torch_engine.target import TargetOutput


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Prompt tokens [start, start + num_tokens) of a row.

    `prompt` comes with the first chunk. The draft gets the entries of the first `num_pairs` of
    these positions, behind `num_held` that it has in its cache; `covered` is the position up to
    which it then has them.
    """

    row: int
    start: int
    num_tokens: int
    prompt: tuple[int, ...] | None
    ends_prompt: bool
    feeds_draft: bool
    num_pairs: int
    num_held: int
    covered: int


def pass_chunks(
    decoder: Decoder, drafter: Drafter | None, chunks: Sequence[Chunk], ended: Group | None
) -> Emitted | None:
    """Compute chunks of different rows in one pass.

    Those that end their prompt come first, and `ended` is the group of their rows: it gets its
    first tokens and is ready to decode.
    """
    rows = decoder.rows
    for chunk in chunks:
        if chunk.prompt is not None:
            rows.start(chunk.row, torch.tensor(chunk.prompt, device=rows.tokens.device))
    output = decoder.prefill([Span(one.row, one.start, one.num_tokens) for one in chunks])
    if drafter is not None:
        _feed(drafter, chunks, output)
    if ended is None:
        return None
    lengths, last, passed = [], [], 0
    for chunk in chunks[: ended.num_rows]:
        rows.covered[chunk.row] = chunk.covered
        rows.draft_lengths[chunk.row] = chunk.num_held + chunk.num_pairs
        passed += chunk.num_tokens
        lengths.append(chunk.start + chunk.num_tokens)
        last.append(passed - 1)
    return decoder.first_tokens(ended, output.hidden[0, last, None], lengths)


def _feed(drafter: Drafter, chunks: Sequence[Chunk], output: TargetOutput) -> None:
    """Keep the features that the draft may still need, and extend it where that is due."""
    feeding = [one for one in chunks if one.feeds_draft]
    if not feeding:
        return
    features = captured(output).split([one.num_tokens for one in chunks], dim=1)  # type: ignore[no-untyped-call]
    spans, new = [], []
    for chunk, own in zip(chunks, features, strict=True):
        if not chunk.feeds_draft:
            continue
        num_kept = min(chunk.num_tokens, drafter.features.ring_tokens)
        end = chunk.start + chunk.num_tokens
        positions = drafter.rows.counting[None, end - num_kept : end]
        drafter.features.write(chunk.row, positions, own[:, -num_kept:])
        if chunk.num_pairs:
            spans.append(DraftSpan(chunk.row, chunk.start, chunk.num_pairs, chunk.num_held))
            new.append(own[:, : chunk.num_pairs])
    if spans:
        drafter.extend_prompts(spans, torch.cat(new, dim=1))


class Prefill:
    """How far the prompt of one request has come that fills `row`."""

    def __init__(self, request: GenerationRequest, row: int, *, speculates: bool) -> None:
        self.request = request
        self.row = row
        self.speculates = speculates
        self._num_done = 0
        self._covered = 0
        self._num_held = 0

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
            ends_prompt=is_last,
            feeds_draft=self.speculates,
            num_pairs=num_pairs,
            num_held=num_held,
            covered=self._covered,
        )
