"""The text of a constructed pair, in plain Python: what follows each token, and what is accepted.

The tokens of a cycle have positions 0 … size - 1. The draft always proposes position x + 1. The
target agrees, except at *jump* tokens. Jumps are chosen so that the target runs through the whole
cycle before it repeats: the arcs between jumps are put into another order. So every text of
`size` tokens holds every cycle token once, and exactly the chosen share of jumps.
"""

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenCycle:
    """Cycle position i is token id `first_id` + i; any other id stands for position id mod size.

    `successors[i]` is the position that the target emits after position i. `eos_id` ends a text;
    it need not lie on the cycle.
    """

    first_id: int
    successors: tuple[int, ...]
    eos_id: int

    @property
    def size(self) -> int:
        """Number of tokens on the cycle."""
        return len(self.successors)

    @property
    def jumps(self) -> tuple[int, ...]:
        """Positions after which the draft is wrong."""
        return tuple(
            position
            for position, successor in enumerate(self.successors)
            if successor != (position + 1) % self.size
        )

    @property
    def acceptance_probability(self) -> float:
        """Share of cycle tokens after which the draft is right."""
        return 1 - len(self.jumps) / self.size

    def position(self, token_id: int) -> int:
        """The cycle position as which the pair reads a token."""
        offset = token_id - self.first_id
        return offset if 0 <= offset < self.size else token_id % self.size

    def output(
        self, prompt_ids: Sequence[int], num_tokens: int, *, ignore_eos: bool = False
    ) -> tuple[int, ...]:
        """The greedy continuation: `num_tokens` ids, or fewer if it ends with the end token."""
        ids: list[int] = []
        for token_id in islice(self._continuation(prompt_ids), num_tokens):
            ids.append(token_id)
            if token_id == self.eos_id and not ignore_eos:
                break
        return tuple(ids)

    def accepted(
        self, prompt_ids: Sequence[int], num_rounds: int, num_steps: int
    ) -> tuple[int, ...]:
        """Accepted draft tokens of each of the first rounds of a chain of `num_steps`.

        As engines count: prefill gives the first token, and the first round starts after it. A
        round emits one token more than it accepts.
        """
        positions = map(self.position, self._continuation(prompt_ids))
        jumps, counts = frozenset(self.jumps), list[int]()
        for start in islice(positions, num_rounds):
            count, position = 0, start
            while count < num_steps and position not in jumps:
                count, position = count + 1, next(positions)
            counts.append(count)
        return tuple(counts)

    def acceptance_length(self, num_steps: int) -> float:
        """Expected tokens per round: (1 - p^(num_steps + 1)) / (1 - p)."""
        return sum(self.acceptance_probability**depth for depth in range(num_steps + 1))

    def _continuation(self, prompt_ids: Sequence[int]) -> Iterator[int]:
        position = self.position(prompt_ids[-1])
        while True:
            position = self.successors[position]
            yield self.first_id + position


def make_successors(size: int, p: float, seed: int) -> tuple[int, ...]:
    """Successors with round((1 - p) * size) jumps at random places, in one cycle of all positions.

    Raises ValueError for one or two jumps: so few arcs have no other order.
    """
    num_jumps = round((1 - p) * size)
    if num_jumps == 0:
        return tuple((position + 1) % size for position in range(size))
    if num_jumps < 3:
        raise ValueError(
            f"p={p} on a cycle of {size} tokens makes {num_jumps} jumps: expected 0 or at least 3; "
            f"use p=1.0, p={1 - 3 / size:.3f} or less, or a longer cycle"
        )
    chance = random.Random(seed)
    ends = sorted(chance.sample(range(size), num_jumps))
    successors = [(position + 1) % size for position in range(size)]
    order = _reordered(num_jumps, chance)
    for arc, following in zip(order, order[1:] + order[:1], strict=True):
        # Arc i ends at ends[i] and so starts one after the end of the arc before it.
        successors[ends[arc]] = (ends[following - 1] + 1) % size
    return tuple(successors)


def _reordered(num_arcs: int, chance: random.Random) -> list[int]:
    """A circular order of the arcs in which none is followed by its old successor."""
    order = list(range(num_arcs))
    while any(
        (arc + 1) % num_arcs == following
        for arc, following in zip(order, order[1:] + order[:1], strict=True)
    ):
        chance.shuffle(order)  # about one shuffle in three will do
    return order
