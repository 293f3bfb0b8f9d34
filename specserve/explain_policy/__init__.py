"""What a policy does with so many running decodes, why, and what it earns."""

from specserve.explain_policy.command import explain_policy

__all__ = ["explain_policy"]
