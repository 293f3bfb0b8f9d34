"""Where each value of a run comes from, and what becomes of it."""

from specserve.explain.command import explain_keys

__all__ = ["explain_keys"]
