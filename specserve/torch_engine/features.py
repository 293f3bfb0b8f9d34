"""The target's hidden states that the draft has not consumed yet."""

import torch
from torch import Tensor

from specserve.plan import Plan, SpeculationPlan


class FeatureStore:
    """Per row a ring of features [.., F], addressed by position.

    A row's last `ring_tokens` positions can be read back.
    """

    def __init__(
        self,
        *,
        num_rows: int,
        ring_tokens: int,
        width: int,
        dtype: torch.dtype,
        device: torch.device,
    ) -> None:
        self.ring_tokens = ring_tokens
        self._values = torch.zeros((num_rows * ring_tokens, width), dtype=dtype, device=device)
        self._first_slots = torch.arange(num_rows, device=device)[:, None] * ring_tokens

    @property
    def num_bytes(self) -> int:
        """Bytes of all rings."""
        return self._values.nbytes

    def read(self, first_row: int, positions: Tensor) -> Tensor:
        """Features [B, Q, F] of the B rows from `first_row` on at positions [B, Q]."""
        slots = self._slots(first_row, positions)
        return self._values.index_select(0, slots).view(*positions.shape, -1)

    def write(self, first_row: int, positions: Tensor, features: Tensor) -> None:
        """Keep features [B, Q, F]; at most `ring_tokens` different positions of a row at once."""
        slots = self._slots(first_row, positions)
        self._values.index_copy_(0, slots, features.flatten(0, 1).to(self._values.dtype))

    def move_row(self, source: int, destination: int, num_tokens: int) -> None:
        """Copy the ring of a row of at most `num_tokens` positions over another's."""
        rings = self._values.view(-1, self.ring_tokens, self._values.shape[-1])
        # Positions wrap at the ring's end only, so a short row fills no more than its beginning.
        rings[destination, :num_tokens] = rings[source, :num_tokens]

    def exchange_rows(self, one: int, other: int, num_tokens: int) -> None:
        """Let the rings of two rows of at most `num_tokens` positions change places."""
        rings = self._values.view(-1, self.ring_tokens, self._values.shape[-1])[:, :num_tokens]
        rings[[one, other]] = rings[[other, one]]

    def _slots(self, first_row: int, positions: Tensor) -> Tensor:
        first_slots = self._first_slots[first_row : first_row + positions.shape[0]]
        return (positions % self.ring_tokens + first_slots).flatten()


def make_feature_store(
    plan: Plan, speculation: SpeculationPlan, device: torch.device
) -> FeatureStore:
    """Rings that span what a round may leave behind, or whole rows if they are to be refilled."""
    row_tokens = plan.scheduler.row_tokens
    refills = speculation.while_off == "refill"
    return FeatureStore(
        num_rows=plan.scheduler.max_running_requests,
        ring_tokens=row_tokens if refills else speculation.num_steps + 2,
        width=len(speculation.draft.aux_layer_inputs) * plan.target.hidden_size,
        dtype=getattr(torch, plan.target.dtype),
        device=device,
    )
