"""One step's device work, gathered on the host before any of it runs."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import NamedTuple

from specserve.torch_engine.active import ActiveRequest
from specserve.torch_engine.bounds import RowBounds, window_of
from specserve.torch_engine.drafter import Drafter
from specserve.torch_engine.group import Depth, Group
from specserve.torch_engine.lineup import Move
from specserve.torch_engine.prefill import Chunk, pass_chunks
from specserve.torch_engine.round import Decoder, Emitted
from specserve.torch_engine.totals import Totals


class Pass(NamedTuple):
    """A pass that emits, and the requests it was made for. Without a draft, `depth` is None."""

    requests: Sequence[ActiveRequest]
    depth: Depth | None
    is_prefill: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class StepWork:
    """`calls` are to run in their order; those that emit are described by `passes`, in that order.

    Adding work advances the requests' bounds and counts the model calls.
    """

    serial: int
    decoder: Decoder
    totals: Totals
    calls: list[Callable[[], Emitted | None]] = field(default_factory=list)
    passes: list[Pass] = field(default_factory=list)

    def move_rows(self, moves: Sequence[Move]) -> None:
        """Put requests where the line-up wants them."""
        rows = self.decoder.rows
        for move in moves:
            make = rows.exchange if move.exchange else rows.move
            self.calls.append(partial(make, move.source, move.destination, move.num_tokens))

    def prefill(
        self,
        drafter: Drafter | None,
        chunks: Sequence[Chunk],
        group: Group | None,
        ended: Sequence[ActiveRequest],
    ) -> None:
        """Pass chunks of prompts; `ended` are the requests, and `group` the rows, that they end."""
        self.calls.append(partial(pass_chunks, self.decoder, drafter, chunks, group))
        self.totals.prefill_tokens += sum(chunk.num_tokens for chunk in chunks)
        self.totals.draft_upkeep_calls += any(chunk.num_pairs for chunk in chunks)
        if ended:
            self.passes.append(Pass(ended, None, is_prefill=True))

    def refill(self, drafter: Drafter, row: int, bounds: RowBounds, chunk_tokens: int) -> None:
        """Make good all of a row's missing draft entries but the newest, which will propose."""
        num_left = bounds.max_pairs - 1
        while num_left:
            num_pairs = min(num_left, chunk_tokens)
            self.calls.append(partial(drafter.refill, row, num_pairs, bounds.max_length))
            bounds.refilled(num_pairs)
            num_left -= num_pairs
            self.totals.draft_upkeep_calls += 1

    def keep_up(self, drafter: Drafter, group: Group, requests: Sequence[ActiveRequest]) -> None:
        """Extend the draft before a plain round, without proposing."""
        window = window_of([one.bounds for one in requests], drafter.most_pairs)
        self.calls.append(partial(drafter.keep_up, group, window))
        self.totals.draft_upkeep_calls += 1

    def decode_plainly(
        self,
        drafter: Drafter | None,
        group: Group,
        requests: Sequence[ActiveRequest],
        *,
        keeps_up: bool,
    ) -> None:
        """One token for each request, whose features go to the drafter, if there is one."""
        window = window_of([one.bounds for one in requests], group.num_rows)
        self.calls.append(partial(self.decoder.plain, group, window, drafter))
        self.passes.append(Pass(requests, None, is_prefill=False))
        for one in requests:
            one.bounds.launched_plain(keeps_up=keeps_up)

    def speculate(
        self, drafter: Drafter, group: Group, requests: Sequence[ActiveRequest], depth: Depth
    ) -> None:
        """Draft and verify for each request."""
        window = window_of([one.bounds for one in requests], drafter.most_pairs)
        decode = self.decoder.chain if depth.topk == 1 else self.decoder.tree
        self.calls.append(partial(decode, group, window, drafter, depth))
        self.passes.append(Pass(requests, depth, is_prefill=False))
        self.totals.draft_calls += depth.num_steps
        self.totals.verify_calls += 1
        for one in requests:
            one.bounds.launched_speculative(self.serial, depth.num_steps, skips=window.skips)
