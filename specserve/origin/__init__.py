"""Where each value of a composed configuration comes from, and what it overrode."""

from specserve.origin.trace import Choice, Origin, Setting, Trace, trace_run

__all__ = ["Choice", "Origin", "Setting", "Trace", "trace_run"]
