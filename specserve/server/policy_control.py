"""Changes of a running engine's policy: one at a time, each recorded."""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from specserve.config.policy import PolicyConfig
from specserve.engine import Engine, PolicyState
from specserve.errors import RequestError
from specserve.server.policy_change import Change, PinnedTo, outcome


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """Who asked for a change, and in which words."""

    client: str | None
    request_id: str
    asked: dict[str, Any]


class PolicyControl:
    """Owns what the engine does not know: the run's own policy, a pin, and the version.

    Changes that come at the same time are carried out one after the other, each on what the one
    before has left, so that two that name different fields both arrive. A client that must not
    overwrite what it has not seen says which version it has seen.
    """

    def __init__(
        self, own: PolicyConfig, record_event: Callable[[str, dict[str, Any]], None], *, start: int
    ) -> None:
        """`start` (Unix seconds) tells the versions of one run from those of another."""
        self.own = own
        self._record_event = record_event
        self._start = start
        self._num_changes = 0
        self._pinned: PinnedTo | None = None
        self._changing = asyncio.Lock()

    @property
    def pinned(self) -> PinnedTo | None:
        """Whether a pin is in force, and which."""
        return self._pinned

    @property
    def version(self) -> str:
        """Another one after each change."""
        return f"{self._start}-{self._num_changes}"

    async def change(
        self, engine: Engine, change: Change, audit: Audit, *, seen: str | None
    ) -> PolicyState:
        """Carry out `change`, if `seen` is None or still the version.

        Raises ConfigError for a policy that is none or was not built for, RequestError (412) for an
        old version; the policy then is what it was.
        """
        async with self._changing:
            if seen is not None and seen != self.version:
                raise _stale(seen, self.version)
            before = (await engine.stats()).policy.policy
            after = outcome(change, before, self.own)
            state = await engine.set_policy(after.policy)
            self._pinned = after.pinned
            self._num_changes += 1
            self._record_event(
                "policy.replaced",
                {
                    "before": before.model_dump(mode="json"),
                    "after": after.policy.model_dump(mode="json"),
                    "pinned": self._pinned,
                    "version": self.version,
                    "asked": audit.asked,
                    "client": audit.client,
                    "request_id": audit.request_id,
                },
            )
            return state


def _stale(seen: str, version: str) -> RequestError:
    message = (
        f"If-Match: the policy has changed since {seen} and is at {version} now; "
        "read it again, then repeat the change"
    )
    return RequestError(message, param="If-Match", status=412)
