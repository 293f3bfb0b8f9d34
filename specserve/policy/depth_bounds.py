"""How deep a policy may draft at most, whatever it would like."""

from specserve.config.policy import Bounds
from specserve.policy.depth_table import DepthTable


class DepthBounds:
    """The bounds of a policy, of which the tighter one holds, for rounds of `max_num_steps`."""

    def __init__(self, bounds: Bounds, max_num_steps: int) -> None:
        self._table = DepthTable(bounds.schedule) if bounds.schedule else None
        self._disable_above = bounds.disable_above
        self._max_num_steps = max_num_steps

    def limit(self, running: int) -> int:
        """The deepest depth that is allowed with `running` decodes."""
        if self._disable_above is not None and running > self._disable_above:
            return 0
        if self._table is None:
            return self._max_num_steps
        return min(self._table.depth(running), self._max_num_steps)
