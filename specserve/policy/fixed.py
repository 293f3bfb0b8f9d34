"""The two policies that never change their mind."""

from specserve.policy.observation import Decision, Observation


class Off:
    """Plain decoding in every round."""

    def __init__(self) -> None:
        self._decision = Decision(num_steps=0, reason="policy off: never speculates")

    def decide(self, observation: Observation) -> Decision:
        """Depth 0."""
        return self._decision


class Always:
    """The built depth in every round."""

    def __init__(self, num_steps: int) -> None:
        self._decision = Decision(
            num_steps=num_steps, reason=f"policy always: {num_steps} draft steps in every round"
        )

    def decide(self, observation: Observation) -> Decision:
        """The built depth."""
        return self._decision
