"""Which row each decoding request has: speculating ones first, then plain ones, without gaps."""

from typing import NamedTuple

from specserve.torch_engine.active import ActiveRequest


class Move(NamedTuple):
    """Row contents to copy from `source` to `destination`, or to exchange."""

    source: int
    destination: int
    num_tokens: int
    exchange: bool


class Lineup:
    """The decoding requests in row order. A change returns the moves that the rows must make."""

    def __init__(self) -> None:
        self._requests: list[ActiveRequest] = []
        self._num_speculating = 0

    @property
    def requests(self) -> tuple[ActiveRequest, ...]:
        """All, in row order."""
        return tuple(self._requests)

    @property
    def num_speculating(self) -> int:
        """So many rows, the first ones, may speculate."""
        return self._num_speculating

    def __len__(self) -> int:
        return len(self._requests)

    def add(self, request: ActiveRequest, row: int) -> list[Move]:
        """Take in a request that has prefilled `row`, which lies behind all of the line-up."""
        end, first_plain = len(self._requests), self._num_speculating
        if not request.speculates or first_plain == end:
            self._requests.append(request)
            self._num_speculating += request.speculates
            return _copy(request, row, end)
        displaced = self._requests[first_plain]
        self._requests[first_plain] = request
        self._requests.append(displaced)
        self._num_speculating += 1
        if row == end:
            longest = max(request.bounds.max_length, displaced.bounds.max_length)
            return [Move(first_plain, row, longest, exchange=True)]
        return [*_copy(displaced, first_plain, end), *_copy(request, row, first_plain)]

    def remove(self, request: ActiveRequest) -> list[Move]:
        """Let a request go; those behind it close the gap."""
        gap = next(i for i, other in enumerate(self._requests) if other is request)
        moves = []
        if gap < self._num_speculating:
            self._num_speculating -= 1
            moves += self._fill(gap, self._num_speculating)
            gap = self._num_speculating
        moves += self._fill(gap, len(self._requests) - 1)
        self._requests.pop()
        return moves

    def _fill(self, gap: int, source: int) -> list[Move]:
        request = self._requests[source]
        self._requests[gap] = request
        return _copy(request, source, gap)


def _copy(request: ActiveRequest, source: int, destination: int) -> list[Move]:
    if source == destination:
        return []
    return [Move(source, destination, request.bounds.max_length, exchange=False)]
