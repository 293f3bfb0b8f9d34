"""Task `serve`: facts, plan, run directory, worker, HTTP; until told to stop."""

from specserve.serve.task import serve

__all__ = ["serve"]
